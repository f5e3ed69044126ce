#pragma once

#include <cstdint>
#include <vector>

namespace tenon::inline program {

/// A TMA tensor map: a kernel on a device reads the buffer in boxes, with zero fill out of bounds.
/// Axes are ordered innermost first; `rows` is the extent of the outermost axis, in the form that
/// the stage of compilation has for extents.
template <class Rows>
struct BasicTensorMap {
  /// Index into the call's buffers.
  std::uint32_t buffer = 0;
  Rows rows;
  /// Extents of the inner axes.
  std::vector<std::uint64_t> extents;
  /// Strides in elements of all axes except the innermost.
  std::vector<std::uint64_t> pitches;
  /// Box extents and traversal strides: every `steps`th element is copied.
  std::vector<std::uint64_t> box;
  std::vector<std::uint64_t> steps;
  /// Im2col mode if not empty: a window moves over columns and rows with stride `steps`, and a copy
  /// takes one window position per column of the box, continuing across rows and images. For both
  /// axes: zero padding before the image, and number of window positions.
  std::vector<std::uint64_t> before = {}, places = {};

  bool operator==(const BasicTensorMap&) const = default;
};

}  // namespace tenon::inline program
