#pragma once

#include "ir/graph.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::passes {

/// Quantization parameters of the values and weights of a graph.
struct QdqPlan {
  struct Activation {
    DType dtype = DType::U8;
    float scale = 1;
    std::int64_t zero_point = 0;
  };
  /// by the value's name
  std::map<std::string, Activation> activations;
  /// reasons of products that stay in floats, by name
  std::map<std::string, std::string> skipped;
  /// 4, 7 or 8
  int weight_bits = 8;
  /// weights along the reduction that share a scale; 0: all weights of an output
  std::int64_t group = 0;
  /// weight-only quantization: activations stay floats
  bool only_weights = false;
};

/// A convolution or matrix product, and whether it can be quantized.
struct QuantizableContraction {
  NodeId node;
  /// of its first result
  std::string name;
  /// why it cannot be quantized; empty if it can
  std::string reason;
  /// output-channel axis of its result
  std::size_t outputs_axis = 1;
  /// value whose range is to be measured: the left operand, before moves
  ValueId observed;
};
std::vector<QuantizableContraction> quantizable_contractions(const Graph& graph, bool only_weights);

/// Returns further values to store in 8 bits: the operands of adds of two activations.
std::vector<ValueId> quantizable_joins(const Graph& graph,
                                       const std::vector<QuantizableContraction>& products);

/// Returns whether the graph already has quantize or dequantize nodes.
bool is_quantized(const Graph& graph);
/// Throws Error (Usage) if the graph is already quantized.
void require_floats(const Graph& graph);

/// Turns weights that reach a matrix product through a transpose into transposed constants.
Graph lay_out_weights(Graph graph);

/// Quantizes only the operands of one product according to the plan; `observed` names the value
/// whose range its left operand has.
Graph quantize_contraction(Graph graph, NodeId product, const std::string& observed,
                           const QdqPlan& plan);

/// Inserts quantize_linear and dequantize_linear around the products of the plan: one pair for each
/// value with parameters, weights of i8 (or i4) with a scale per output or group, biases of i32
/// with the scale of the sums.
Graph insert_qdq(Graph graph, const QdqPlan& plan);

}  // namespace tenon::passes
