#pragma once

#include "memory/arena.h"
#include "memory/problem.h"

#include <span>

namespace tenon::memory {

/// Returns the storages of an event list, without offsets: a value lives from its definition to the
/// last read before it is recomputed. With `in_place`, a result reuses the storage of an operand
/// that dies at its definition, if the item allows it.
std::vector<ArenaBlock> lifetimes_of(const Problem& problem, std::span<const Event> events,
                                     bool in_place = true);

/// Converts storages to buffers for placement.
std::vector<ArenaBuffer> arena_buffers(std::span<const ArenaBlock> blocks);

/// Returns the duration of the events: items run in order; copies run in order on the link, one at
/// a time per direction.
double seconds_of(const Problem& problem, std::span<const Event> events);

/// Returns one event per item, in order, each with its first way.
std::vector<Event> plain_events(const Problem& problem);

/// Places the events' storages and completes the plan.
Plan planned(const Problem& problem, std::vector<Event> events, const PlaceOptions& options = {},
             bool in_place = true);

/// Lower bound on the memory of any order: the operands, results and workspace of one item.
std::uint64_t working_set_bytes(const Problem& problem, std::uint32_t item);
std::uint64_t largest_working_set_bytes(const Problem& problem);

}  // namespace tenon::memory
