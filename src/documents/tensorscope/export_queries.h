#pragma once

#include "documents/tensorscope/table.h"
#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::documents::tensorscope {

// Queries on a graph for the exporter, about differences between TensorFlow's and Tenon's
// conventions.

TensorShape shape_of(const Graph& graph, ValueId id);
/// Returns whether all readers are convolutions with the value as weights.
bool is_filter(const Graph& graph, ValueId id);
std::int64_t groups_of(const Graph& graph, NodeId conv);
/// TensorFlow stores filters as height, width, inputs, outputs for any image layout; for a
/// depthwise convolution as height, width, channels, multiplier.
TensorShape filter_shape(const Graph& graph, ValueId id);
/// Returns whether the node clips between the numbers 0 and 6.
bool is_relu6(const Graph& graph, NodeId id);

/// Explicit pads of a convolution or pool, neither SAME nor VALID, by axis of the image in memory:
/// begin and end.
struct TensorFlowPadding {
  /// of the rows; columns are next
  std::size_t first_axis = 0;
  /// begins, then ends
  std::vector<std::int64_t> pads;
};
std::optional<TensorFlowPadding> padding_of_its_own(const Graph& graph, NodeId id);

/// Parses "GPU:0".
DeviceName parse_device(const std::string& text);
/// Throws Error, Unsupported, with all values that lack a fixed shape or a type in TensorFlow.
void require_shapes(const Graph& graph);
/// Returns the outer operands of nodes with one source, in the order of the last node's operands.
std::vector<ValueId> external_operands(const Graph& graph, const std::vector<NodeId>& nodes);
/// Returns the optimisers' names for a shape that a gradient reads.
std::vector<std::string> folded_names(const std::string& node, std::size_t input);

}  // namespace tenon::documents::tensorscope
