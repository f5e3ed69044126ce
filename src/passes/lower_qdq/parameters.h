#pragma once

#include "passes/rewrite/match.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::passes::qdq {

/// Constant scales and zero points of a quantize or dequantize node.
struct Parameters {
  /// one, or one per position along `axis`
  std::vector<float> scales;
  /// likewise
  std::vector<std::int64_t> zero_points;
  /// from the front
  std::int64_t axis = 0;

  bool is_per_tensor() const { return scales.size() == 1 && zero_points.size() == 1; }
  std::int64_t zero_point() const { return zero_points.front(); }
  bool operator==(const Parameters&) const = default;
};

/// Returns nullopt if the parameters are not constant, not f32, or blockwise.
std::optional<Parameters> parameters_of(const Graph& graph, const Node& node);

/// Returns the elements of an integer constant, also through casts and reshapes.
std::optional<Tensor> integers_of(const Graph& graph, ValueId value);

/// Weights with their zero point subtracted, and bounds on sums over them.
struct CentredWeights {
  /// i8, in the graph's layout
  Tensor values;
  /// sum of the weights of each output
  std::vector<std::int64_t> sums;
  /// sum of the weights' magnitudes of each output
  std::vector<std::int64_t> magnitudes;
};
/// `outputs` is the output-channel axis. Returns nullopt if a weight minus its zero point exceeds
/// eight bits.
std::optional<CentredWeights> centred_weights(const Tensor& stored,
                                              const std::vector<std::int64_t>& zero_points,
                                              std::size_t outputs);

/// Returns whether no sum of products with u8 elements, plus `added`, overflows i32.
bool sums_fit(const CentredWeights& weights, const std::vector<std::int64_t>& added);

/// Returns f32, a scalar for one number.
Tensor tensor_of(const std::vector<float>& numbers);
/// Returns i32[n].
Tensor tensor_of(const std::vector<std::int64_t>& numbers);

}  // namespace tenon::passes::qdq
