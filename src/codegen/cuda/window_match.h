#pragma once

#include "codegen/nest_names.h"
#include "nests/contraction.h"
#include "nests/packing.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

/// Loops by id.
using LoopMap = std::map<std::size_t, const Statement*>;
LoopMap by_id(const std::vector<const Statement*>& loops);
/// Returns the loop if the index is exactly that loop, else null.
const Statement* plain_loop(const Scalar& index, const LoopMap& of);

/// Copies after which a refused contraction would match, or match a faster kernel.
struct LayoutRequest {
  /// If defined, this load should read a copy of its buffer with the axes in this order and, unless
  /// 0, channels zero-padded to this count.
  Scalar load;
  std::vector<std::size_t> axes;
  std::int64_t channels = 0;
  /// Unless empty, the result should be written with its loops in this order.
  std::vector<const Statement*> result_order;
  /// Channels of that result with padding, unless 0; whether one of the loops runs over channels.
  std::int64_t result_channels = 0;
  bool has_channel_loop = true;

  bool is_empty() const { return !load.is_defined() && result_order.empty(); }
};

/// Treatment of an image's channels: leave as they are, a zero-padded copy may be requested, or the
/// image is already padded.
enum class ChannelPadding { Unpadded, Paddable, Padded };

/// One axis of an image under a window: image position = stride * result position + dilation * tap
/// - before.
struct WindowAxis {
  /// Loops over result positions and over taps; null for an extent of one.
  const Statement *position = nullptr, *tap = nullptr;
  std::int64_t stride = 1, dilation = 1;
  /// Zero padding.
  std::int64_t before = 0, after = 0;
  std::int64_t taps = 1;
  Dim image = 1, result = 1;

  std::int64_t span() const { return (taps - 1) * dilation + 1; }
};

/// Reads an index as a window axis: loops, steps and `before`. Returns the reason for a refusal,
/// else
/// "".
std::string read_axis(const Scalar& index, const LoopMap& positions, const LoopMap& taps,
                      WindowAxis& axis);
/// Sets the least padding after the image for which the window has `result` positions. Returns the
/// reason for a refusal, else "".
std::string fit_padding(WindowAxis& axis);

/// A contraction as a convolution of channels-last images (batch, row, column, channel) by weights
/// (group, output, row tap, column tap, channel), or as a gradient of one.
struct WindowMatch {
  /// Reason for the refusal; empty for a match.
  std::string refusal;
  /// For a refusal, or for weights in another layout.
  LayoutRequest request;
  /// The image, and the other factor: weights, or the gradient of the result. For a data gradient:
  /// the gradient of the result, and the weights.
  Scalar image, other;
  const Statement *batch = nullptr, *groups = nullptr, *outputs = nullptr, *channels = nullptr;
  std::array<WindowAxis, 2> axes;
  Dim batch_count = 1, output_count = 1;
  std::int64_t group_count = 1;
  /// Channels of a group in memory; more than the loop over channels if the image is zero-padded.
  std::int64_t channel_count = 1;
  bool is_padded = false;
  /// True if the weights lie in one piece in the order above.
  bool has_weight_layout = true;

  /// Extents in the order of `LibraryCall`.
  std::vector<Dim> extents() const;
  /// Packing of constant weights into the order above; `buffer` is an index in the nest. Returns
  /// nullopt if there are fewer than two loops to pack along.
  std::optional<nests::Packing> packing() const;
};

/// Matches a convolution by any types and epilogue; `store` writes the sum. Images whose channels
/// are fewer than `granularity` are refused with a request if `padding` permits it.
WindowMatch match_windows(const nests::Contraction& contraction, const Statement& store,
                          ChannelPadding padding = ChannelPadding::Unpadded,
                          std::int64_t granularity = 1);
/// Matches the gradient of such a convolution by its weights: sums over positions for each tap.
WindowMatch match_weight_gradient_windows(const nests::Contraction& contraction,
                                          const Statement& store, ChannelPadding padding,
                                          std::int64_t granularity);
/// Matches the gradient by the image: windows that run backwards, in phases for strides.
WindowMatch match_data_gradient_windows(const nests::Contraction& contraction,
                                        const Statement& store);

}  // namespace tenon::codegen::cuda
