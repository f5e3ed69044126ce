#pragma once

#include "ir/graph.h"
#include "passes/quantize/relay/config.h"

#include <functional>
#include <vector>

// The stages of Relay's int8 quantization, in the order in which they run. Between `prepare` and
// `annotate` stands the pass quantize-partition.
namespace tenon::relay_quantize {

/// Whether anything could be folded into weights: without, a graph keeps its sums and their names.
bool has_scales(const Graph& graph);

/// Brings a graph to the form that the rules of the later stages know: batch norms that could not
/// go into weights are a product and a sum, a convolution's bias is an add behind it, constants are
/// on the right. Expects scales to be folded.
Graph prepare(Graph graph);
/// The second of these alone: Relay has no rule for a bias inside an 8-bit section, but for an add.
Graph with_biases_apart(Graph graph);

/// Puts a simulated quantizer wherever a value enters an 8-bit section. The numbers of each are
/// three new inputs (`dom_scale`, `clip_min`, `clip_max`), in the order of visits.
Graph annotate(const Graph& graph, const Config& config);

/// The quantizers of a graph in the order of visits.
std::vector<NodeId> quantizers(const Graph& graph);
Kind kind_of(const Graph& graph, NodeId quantizer);

/// Gives the quantizers their numbers: `scales` has the largest size of each value, one for each of
/// `quantizers`, in that order.
Graph bind_scales(const Graph& graph, const std::vector<float>& scales, const Config& config);
/// The scale of a constant's quantizer: its largest size, or the power of two above it.
float weight_scale(const Graph& graph, NodeId quantizer, const Config& config);
/// The graph in floats, with what each quantizer reads as an output.
Graph profile_graph(const Graph& graph, const std::vector<NodeId>& watched);

/// Computes in integers what stands between quantizers. Throws Error (Unsupported), naming the
/// node, for a sum that could leave 32 bits and operands that no rule joins.
Graph realize(const Graph& graph, const Config& config);

/// Whether a pool's window is its whole image.
bool is_global_average(const Graph& graph, NodeId node);

}  // namespace tenon::relay_quantize
