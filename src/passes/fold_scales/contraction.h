#pragma once

#include "passes/fold_scales/affine.h"
#include "passes/fold_scales/products.h"

// How convolutions and matrix products take a scale into their weights.
namespace tenon::scales {

/// Convolutions, transposed ones and matrix products.
bool is_contraction(const Graph& graph, NodeId node);
/// Whether a shift can be its own bias; that of a matrix product is an add behind it.
bool has_bias_operand(const Graph& graph, NodeId node);

/// The weights that a scale goes to, perhaps behind transposes, and what they are multiplied by.
struct WeightChange {
  ValueId constant;
  /// of the constant: the contraction or a transpose before it
  NodeId reader;
  /// where it reads it
  std::size_t operand = 0;
  Factors factors;
};
/// For a scale of the contraction's result. Nothing, with the reason, where it cannot take it.
std::optional<WeightChange> scale_of_result(const Graph& graph, NodeId node, const Affine& affine,
                                            std::string& why);
/// For a scale of the operand it reads there.
std::optional<WeightChange> scale_of_operand(const Graph& graph, NodeId node, std::size_t operand,
                                             const Affine& affine, std::string& why);

/// What a shift of the operand it reads there adds to each channel of the result, along
/// `channel_axis` of it.
std::optional<std::vector<double>> effect_of_shift(const Graph& graph, NodeId node,
                                                   std::size_t operand, const Affine& affine,
                                                   std::string& why);
/// The axis of the result that its channels lie along.
std::optional<std::size_t> channel_axis(const Graph& graph, NodeId node);

}  // namespace tenon::scales
