#pragma once

#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

// Per-channel affine maps, the arithmetic of scale folding.
namespace tenon::passes::scales {

/// y = x * scale + shift, with one pair of numbers per position along one axis of x, or one pair
/// for the whole tensor.
struct ChannelAffine {
  /// absent: one pair for the whole tensor
  std::optional<std::size_t> axis;
  /// of equal size
  std::vector<double> scale, shift;

  bool scales() const;
  bool shifts() const;
  /// Returns whether every scale is greater than zero.
  bool is_positive() const;
  bool is_finite() const;
  /// Returns the map without its shift.
  ChannelAffine scale_only() const;
  /// Returns the scale of each of `count` positions.
  std::vector<double> scales_of(std::size_t count) const;
  std::vector<double> shifts_of(std::size_t count) const;
};

/// One number per position along one axis, or one for the whole tensor.
struct Channels {
  std::optional<std::size_t> axis;
  std::vector<double> numbers;
};
/// Returns the numbers of a constant that varies along at most one axis of the tensor that it is
/// broadcast to.
std::optional<Channels> channels_of(const Constant& constant, const TensorType& tensor);
/// Combines scales and shifts into pairs; nullopt if they vary along different axes.
std::optional<ChannelAffine> pair_up(const Channels& scale, const Channels& shift);
/// Returns the numbers as a tensor that broadcasts against one of that rank.
Tensor broadcast_tensor(const Channels& channels, std::size_t rank, DType dtype);

/// A node that applies a per-channel affine map to one operand.
struct ScaleSource {
  /// index of the operand that holds the value
  std::size_t operand = 0;
  ChannelAffine affine;
};
/// Returns the affine map that the node applies. Returns nullopt and sets `why` for a scaling node
/// that does not qualify; leaves `why` empty for unrelated nodes.
std::optional<ScaleSource> source_of(const Graph& graph, NodeId node, std::string& why);

/// Returns whether scales can be folded in that type: a float type with plain arithmetic.
bool is_scalable(DType dtype);
/// Returns the axis of that letter; nullopt if the layout splits it or lacks it.
std::optional<std::size_t> axis_of(const TensorType& type, char letter, std::size_t otherwise);
/// Returns the type of a value that is a tensor of scalable elements, or null.
const TensorType* scalable_type(const Graph& graph, ValueId value);

}  // namespace tenon::passes::scales
