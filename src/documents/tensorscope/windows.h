#pragma once

#include "documents/tensorscope/data_flow.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon::documents::tensorscope {

/// Order of the axes of an image.
enum class ImageLayout : std::uint8_t { Unknown, ChannelsLast, ChannelsFirst };
/// "NHWC", "NCHW", ""
std::string_view layout_text(ImageLayout layout);

/// Rows, then columns.
struct Windows {
  std::vector<std::int64_t> kernel, strides;
  /// TensorFlow's SAME: pads make ceil(extent / stride) windows; else VALID
  bool is_same = false;
  /// begins, then ends
  std::vector<std::int64_t> pads;
};

/// Returns the windows over `from` with `to` positions: the smallest strides under TensorFlow's
/// SAME or VALID. Nullopt if neither fits.
std::optional<Windows> solve_windows(const std::vector<std::int64_t>& from,
                                     const std::vector<std::int64_t>& to,
                                     const std::vector<std::int64_t>& kernel);

/// Tensors of an image operator's row, forward or backward.
struct ImageShapes {
  /// the tensor under the windows
  const TensorShape* image = nullptr;
  /// one value per window
  const TensorShape* result = nullptr;
  /// height, width, inputs, outputs; null for pools
  const TensorShape* filter = nullptr;
};
/// Returns nullopt for rows of other operators and for inconsistent ranks.
std::optional<ImageShapes> image_shapes(const Row& row, std::string_view op);

/// Returns the layout that a row's shapes determine.
ImageLayout layout_from_shapes(const Row& row, std::string_view op);
/// Returns the layout of each output of each row: from names, from shapes, and by propagation along
/// the flow.
std::vector<ImageLayout> find_layouts(const TensorScopeTable& table, const DataFlow& step);

std::vector<std::int64_t> spatial_extents(const TensorShape& image, ImageLayout layout);

/// Returns the windows of every convolution, pool and gradient of one, by row. Tables omit the
/// windows of pools: all pools of one kind get the smallest window that fits them all, or each its
/// own smallest.
std::map<std::size_t, Windows> find_windows(const TensorScopeTable& table, const DataFlow& step,
                                            const std::vector<ImageLayout>& layouts);

}  // namespace tenon::documents::tensorscope
