#pragma once

#include "nests/loop_nest.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace tenon::nests {

/// Where the element at position `at` of a shape stands under other extents of the same elements.
/// Axes that only come together or fall apart need no division of the whole position.
std::vector<Scalar> reshaped_position(LoopNest& nest, const Dims& from, const Dims& to,
                                      const std::vector<Scalar>& at);

/// The least and greatest value of an integer while loops run over their extents, those that are
/// numbers; nothing where that cannot be told.
std::optional<Range> range_of(const Scalar& scalar,
                              const std::map<std::size_t, std::int64_t>& extents);

/// Calls `visit` for every load in the statements, each once.
void for_each_load(const Block& block, const std::function<void(const Scalar&)>& visit);
/// By buffer: whether it is read, and only at coordinates that the data gives.
std::vector<bool> looked_up(const LoopNest& nest);

/// What becomes of a buffer in a nest.
struct BufferUse {
  /// its number there
  std::size_t id = 0;
  /// axes of which one iteration sees one position: read at 0
  std::vector<std::size_t> shrunk;
  /// one number: `id` is that of a local instead
  bool is_local = false;
};
void renumber_buffers(LoopNest& nest, const std::map<std::size_t, BufferUse>& uses);

/// Makes every extent that the nest's loops and accesses need one that it is given.
void list_extents(LoopNest& nest);

}  // namespace tenon::nests
