#pragma once

#include "nests/loop_nest.h"

#include <functional>
#include <map>
#include <optional>
#include <vector>

namespace tenon::nests {

/// Maps a position under one shape to the position of the same element under another shape. Axes
/// that are only merged or split avoid a division of the full flat position.
std::vector<Scalar> reshaped_position(LoopNest& nest, const Dims& from, const Dims& to,
                                      const std::vector<Scalar>& at);

/// Interval analysis: range of an integer over loops with constant extents; no value if unknown.
std::optional<Range> range_of(const Scalar& scalar,
                              const std::map<std::size_t, std::int64_t>& extents);

/// Calls `visit` for every load in the statements, each once.
void for_each_load(const Block& block, const std::function<void(const Scalar&)>& visit);
/// By buffer: whether it is read, and only at data-dependent coordinates.
std::vector<bool> looked_up(const LoopNest& nest);

/// Renumbering of a buffer in a nest.
struct BufferUse {
  /// New index.
  std::size_t id = 0;
  /// Axes that shrink to extent 1 because an iteration uses a single position.
  std::vector<std::size_t> shrunk;
  /// Replaced by a scalar: `id` is a local.
  bool is_local = false;
};
void renumber_buffers(LoopNest& nest, const std::map<std::size_t, BufferUse>& uses);

/// Registers every extent that loops and accesses of the nest need as a run-time argument.
void list_extents(LoopNest& nest);

}  // namespace tenon::nests
