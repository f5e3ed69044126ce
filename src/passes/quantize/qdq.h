#pragma once

#include "ir/graph.h"

#include <map>
#include <string>
#include <vector>

namespace tenon {

/// How values and weights of a graph become narrow.
struct QdqPlan {
  struct Activation {
    DType dtype = DType::U8;
    float scale = 1;
    std::int64_t zero_point = 0;
  };
  /// by the value's name
  std::map<std::string, Activation> activations;
  /// products by name that stay as they are, and why
  std::map<std::string, std::string> skipped;
  /// 4, 7 or 8
  int weight_bits = 8;
  /// weights along the sum that share a scale; 0: all of an output
  std::int64_t group = 0;
  /// values stay floats
  bool only_weights = false;
};

/// A convolution or matrix product, and whether it can be computed in narrow integers.
struct QuantizableProduct {
  NodeId node;
  /// of its first result
  std::string name;
  /// why it cannot; empty where it can
  std::string reason;
  /// of its result, along which each output has its weights
  std::size_t outputs_axis = 1;
  /// whose range is to be known: its left operand, before moves
  ValueId observed;
};
std::vector<QuantizableProduct> quantizable_products(const Graph& graph, bool only_weights);

/// Values besides the left operands of products that cross memory in bytes: what sums of two of
/// them read.
std::vector<ValueId> quantizable_joins(const Graph& graph,
                                       const std::vector<QuantizableProduct>& products);

/// Whether the graph quantizes or dequantizes anything already.
bool is_quantized(const Graph& graph);
/// Throws Error (Usage) where it does.
void require_floats(const Graph& graph);

/// Weights that reach a matrix product through a transpose become constants of their own.
Graph lay_out_weights(Graph graph);

/// Narrows the operands of one product as the plan says, and nothing else; `observed` is the value
/// whose range its left one has.
Graph narrow_product(Graph graph, NodeId product, const std::string& observed, const QdqPlan& plan);

/// Puts quantize_linear and dequantize_linear around the products of the plan: one pair for each
/// value that it knows, weights of i8 (or i4) with a scale for each output or group, biases of i32
/// in the scale of the sums.
Graph insert_qdq(Graph graph, const QdqPlan& plan);

}  // namespace tenon
