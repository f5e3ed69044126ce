#pragma once

#include "passes/fold_scales/affine.h"
#include "passes/fold_scales/products.h"

// Folds scales into the weights of convolutions and matrix products.
namespace tenon::passes::scales {

/// Returns whether the node is a convolution, transposed convolution or matrix product.
bool is_contraction(const Graph& graph, NodeId node);
/// Returns whether the node has a bias operand for a shift. A matrix product needs a following add.
bool has_bias_operand(const Graph& graph, NodeId node);

/// Weights to be scaled, possibly through transposes, and the factors.
struct WeightChange {
  ValueId constant;
  /// reader of the constant: the contraction or a transpose before it
  NodeId reader;
  /// operand index at the reader
  std::size_t operand = 0;
  ChannelFactors factors;
};
/// Returns the change that scales the contraction's result; nullopt with the reason if impossible.
std::optional<WeightChange> scale_of_result(const Graph& graph, NodeId node,
                                            const ChannelAffine& affine, std::string& why);
/// Returns the change that has the effect of scaling this operand.
std::optional<WeightChange> scale_of_operand(const Graph& graph, NodeId node, std::size_t operand,
                                             const ChannelAffine& affine, std::string& why);

/// Returns the sums that shifting this operand adds to each channel of the result, along its
/// `channel_axis`.
std::optional<std::vector<double>> effect_of_shift(const Graph& graph, NodeId node,
                                                   std::size_t operand, const ChannelAffine& affine,
                                                   std::string& why);
/// Returns the channel axis of the result.
std::optional<std::size_t> channel_axis(const Graph& graph, NodeId node);

}  // namespace tenon::passes::scales
