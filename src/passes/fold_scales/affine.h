#pragma once

#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

// What fold-scales computes with: a scale and a shift for each channel.
namespace tenon::scales {

/// y = x * scale + shift, with one pair of numbers for each position along one axis of x, or one
/// for all of it.
struct Affine {
  /// absent: the same pair everywhere
  std::optional<std::size_t> axis;
  /// equally many
  std::vector<double> scale, shift;

  bool scales() const;
  bool shifts() const;
  /// every scale is above zero
  bool is_positive() const;
  bool is_finite() const;
  /// Without the shift.
  Affine scale_only() const;
  /// The pair for each of `count` positions.
  std::vector<double> scales_of(std::size_t count) const;
  std::vector<double> shifts_of(std::size_t count) const;
};

/// One number for each position along one axis, or one for all.
struct Channels {
  std::optional<std::size_t> axis;
  std::vector<double> numbers;
};
/// The numbers of a constant that differ along at most one axis of a tensor they are broadcast to.
std::optional<Channels> channels_of(const Constant& constant, const TensorType& tensor);
/// Both along one axis, as pairs: nothing where they run along different ones.
std::optional<Affine> pair_up(const Channels& scale, const Channels& shift);
/// The numbers as a tensor that broadcasts against one of that rank.
Tensor broadcast_tensor(const Channels& channels, std::size_t rank, DType dtype);

/// A node that multiplies or shifts its operand by constants, channel by channel.
struct Source {
  /// where it reads the value
  std::size_t operand = 0;
  Affine affine;
};
/// Nothing, with the reason in `why`, for a node that could have been one; `why` stays empty for
/// one that has nothing to do with scales.
std::optional<Source> source_of(const Graph& graph, NodeId node, std::string& why);

/// The floats whose arithmetic is that of a scale.
bool is_scalable(DType dtype);
/// Where the axis of that letter lies; nothing where the layout splits it or has none.
std::optional<std::size_t> axis_of(const TensorType& type, char letter, std::size_t otherwise);
/// The type of a value known to be a tensor of scalable elements, or null.
const TensorType* scalable_type(const Graph& graph, ValueId value);

}  // namespace tenon::scales
