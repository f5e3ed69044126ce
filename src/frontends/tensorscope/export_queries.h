#pragma once

#include "frontends/tensorscope/table.h"
#include "ir/graph.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::tensorscope {

// What the writer asks of a graph, where TensorFlow says a thing in another way than Tenon.

TensorShape shape_of(const Graph& graph, ValueId id);
/// Whether convolutions alone read the value, as their weights.
bool is_filter(const Graph& graph, ValueId id);
std::int64_t groups_of(const Graph& graph, NodeId conv);
/// TensorFlow keeps filters as height, width, inputs, outputs whatever the layout of images; for a
/// depthwise convolution as height, width, channels, results of each.
TensorShape filter_shape(const Graph& graph, ValueId id);
/// clip between 0 and 6, as numbers.
bool is_relu6(const Graph& graph, NodeId id);

/// The pads of a convolution or pool over an image that are neither TensorFlow's SAME nor none, by
/// axis of the image in memory: before and behind.
struct Padding {
  /// rows; columns are the next
  std::size_t first_axis = 0;
  /// beginnings, then ends
  std::vector<std::int64_t> pads;
};
std::optional<Padding> padding_of_its_own(const Graph& graph, NodeId id);

/// "GPU:0"
Device parse_device(const std::string& text);
/// Throws Error, Unsupported, that lists values of no fixed shape, or of no type of TensorFlow's.
void require_shapes(const Graph& graph);
/// What nodes that are one of the source's read from outside, in the order of the last one's
/// operands.
std::vector<ValueId> external_operands(const Graph& graph, const std::vector<NodeId>& nodes);
/// What the optimisers would have called the shape that a gradient reads.
std::vector<std::string> folded_names(const std::string& node, std::size_t input);

}  // namespace tenon::tensorscope
