#pragma once

#include "passes/rewrite/match.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::integers {

/// Scales and zero points of a quantize or dequantize node, all of them constants.
struct Parameters {
  /// one, or one for each position along `axis`
  std::vector<float> scales;
  /// likewise
  std::vector<std::int64_t> zero_points;
  /// from the front
  std::int64_t axis = 0;

  bool is_per_tensor() const { return scales.size() == 1 && zero_points.size() == 1; }
  std::int64_t zero_point() const { return zero_points.front(); }
  bool operator==(const Parameters&) const = default;
};

/// Nothing where they are not constant, not f32 or in blocks.
std::optional<Parameters> parameters_of(const Graph& graph, const Node& node);

/// The elements of a constant of integers, also behind casts and reshapes.
std::optional<Tensor> integers_of(const Graph& graph, ValueId value);

/// Weights without their zero point, and what sums over them can come to.
struct Weights {
  /// i8, as they lie in the graph
  Tensor values;
  /// of each output
  std::vector<std::int64_t> sums;
  /// of their sizes
  std::vector<std::int64_t> magnitudes;
};
/// `outputs` is the axis that each output has a position of. Nothing where a weight less its zero
/// point takes more than eight bits.
std::optional<Weights> centred_weights(const Tensor& stored,
                                       const std::vector<std::int64_t>& zero_points,
                                       std::size_t outputs);

/// Whether no sum of products with elements of u8, plus what is added, leaves i32.
bool sums_fit(const Weights& weights, const std::vector<std::int64_t>& added);

/// f32, a scalar where there is one
Tensor tensor_of(const std::vector<float>& numbers);
/// i32[n]
Tensor tensor_of(const std::vector<std::int64_t>& numbers);

}  // namespace tenon::integers
