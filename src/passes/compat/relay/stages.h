#pragma once

#include "ir/graph.h"
#include "passes/compat/relay/config.h"

#include <functional>
#include <vector>

// The stages of Relay's int8 quantization, in the order in which they run. The pass
// quantize-partition runs between `prepare` and `annotate`.
namespace tenon::passes::relay_quantize {

/// Returns whether the graph has scales to fold into weights. Otherwise it keeps its adds and their
/// names.
bool has_scales(const Graph& graph);

/// Normalizes a graph to the form that later stages match: remaining batch norms become a product
/// and a sum, a convolution's bias becomes a following add, constants move to the right operand.
/// Expects scales to be folded.
Graph prepare(Graph graph);
/// Applies the second of these only: Relay has no rule for a bias inside an 8-bit section, but one
/// for an add.
Graph with_biases_apart(Graph graph);

/// Inserts a simulated quantizer wherever a value enters an 8-bit section. The parameters of each
/// are three new inputs (`dom_scale`, `clip_min`, `clip_max`), in traversal order.
Graph annotate(const Graph& graph, const Config& config);

/// Returns the quantizers of a graph in traversal order.
std::vector<NodeId> quantizers(const Graph& graph);
QuantizerKind kind_of(const Graph& graph, NodeId quantizer);

/// Binds the quantizers' parameters: `scales` holds the largest magnitude of each value, in the
/// order of `quantizers`.
Graph bind_scales(const Graph& graph, const std::vector<float>& scales, const Config& config);
/// Returns the scale of a constant's quantizer: its largest magnitude, or the next power of two.
float weight_scale(const Graph& graph, NodeId quantizer, const Config& config);
/// Returns the float graph with the operand of each quantizer as an output.
Graph profile_graph(const Graph& graph, const std::vector<NodeId>& watched);

/// Replaces computations between quantizers by integer arithmetic. Throws Error (Unsupported),
/// naming the node, for a sum that could overflow 32 bits and for operands that no rule unifies.
Graph realize(const Graph& graph, const Config& config);

/// Returns whether a pool's window covers its whole image.
bool is_global_average(const Graph& graph, NodeId node);

}  // namespace tenon::passes::relay_quantize
