#pragma once

#include "memory/arena.h"
#include "memory/problem.h"

#include <span>

namespace tenon::memory {

/// The storages that a list of events needs, offsets not yet chosen: a value lives from its making
/// to the last read before it is made again. With `in_place`, a result takes the storage of an
/// operand that dies at its making, where the item allows it.
std::vector<Storage> lifetimes_of(const Problem& problem, std::span<const Event> events,
                                  bool in_place = true);

/// The same as buffers to be placed.
std::vector<ArenaBuffer> arena_buffers(std::span<const Storage> storages);

/// Seconds that the events take: work in order, copies in order on the link, each way one at a
/// time.
double seconds_of(const Problem& problem, std::span<const Event> events);

/// Every item once, in order and in its first way.
std::vector<Event> plain_events(const Problem& problem);

/// Finds offsets for the events' storages and fills in the rest of the plan.
Plan planned(const Problem& problem, std::vector<Event> events, const PlaceOptions& options = {},
             bool in_place = true);

/// No order of whole items takes less: the most that one item reads, makes and works in.
std::uint64_t working_set_bytes(const Problem& problem, std::uint32_t item);
std::uint64_t largest_working_set_bytes(const Problem& problem);

}  // namespace tenon::memory
