#pragma once

#include "frontends/tensorscope/data_flow.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace tenon::tensorscope {

/// Where the axes of an image lie.
enum class ImageLayout : std::uint8_t { Unknown, ChannelsLast, ChannelsFirst };
/// "NHWC", "NCHW", ""
std::string_view layout_text(ImageLayout layout);

/// Rows, then columns.
struct Windows {
  std::vector<std::int64_t> kernel, strides;
  /// TensorFlow's SAME: pads make ceil(extent / stride) windows; else VALID
  bool is_same = false;
  /// beginnings, then ends
  std::vector<std::int64_t> pads;
};

/// The windows over `from` that give `to` positions: the smallest strides under either rule of
/// TensorFlow. Nothing where neither rule fits.
std::optional<Windows> solve_windows(const std::vector<std::int64_t>& from,
                                     const std::vector<std::int64_t>& to,
                                     const std::vector<std::int64_t>& kernel);

/// What an image operator's row relates, whatever its direction.
struct ImageShapes {
  /// what windows slide over
  const TensorShape* image = nullptr;
  /// a value for each window
  const TensorShape* result = nullptr;
  /// height, width, inputs, outputs; null for pools
  const TensorShape* filter = nullptr;
};
/// Nothing for rows of other operators and where ranks do not fit.
std::optional<ImageShapes> image_shapes(const Row& row, std::string_view op);

/// The layout that a row's shapes tell by themselves.
ImageLayout layout_from_shapes(const Row& row, std::string_view op);
/// The layout of each output of each row: from names, from shapes, and along the flow.
std::vector<ImageLayout> find_layouts(const Table& table, const DataFlow& step);

std::vector<std::int64_t> spatial_extents(const TensorShape& image, ImageLayout layout);

/// The windows of every convolution, pool and gradient of one, by row. Pools do not tell their
/// windows: all of one kind get the smallest that fits them all, or each its own smallest.
std::map<std::size_t, Windows> find_windows(const Table& table, const DataFlow& step,
                                            const std::vector<ImageLayout>& layouts);

}  // namespace tenon::tensorscope
