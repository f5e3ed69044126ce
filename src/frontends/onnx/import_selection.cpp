#include "frontends/onnx/op_call.h"

#include <algorithm>

namespace tenon::onnx {
namespace {

// k was an attribute before opset 10 and is an input since.
void import_top_k(NodeImport& node) {
  OpCall call(node, "top_k");
  call.operand("x", node.input(0))
      .attr({"axis", node.integer("axis", -1)})
      .attr({"largest", node.integer("largest", 1) != 0})
      .attr({"sorted", node.integer("sorted", 1) != 0});
  if (node.opset() < 10) {
    call.attr({"k", node.integer("k")});
  } else {
    call.dynamic("k", 1);
  }
  node.outputs(call.results(2));
}

void import_unique(NodeImport& node) {
  OpCall call(node, "unique");
  call.operand("x", node.input(0)).attr({"sorted", node.integer("sorted", 1) != 0});
  if (node.has_attr("axis")) call.attr({"axis", node.integer("axis")});
  node.outputs(call.results(std::max<std::size_t>(node.output_count(), 1)));
}

void import_non_max_suppression(NodeImport& node) {
  node.output(node.call("non_max_suppression", node.inputs(),
                        {{"center_point_box", node.integer("center_point_box") != 0}}));
}

void import_det(NodeImport& node) { node.output(node.call("det", {node.input(0)})); }

constexpr Handler selection_table[] = {
    {"Det", import_det},
    {"NonMaxSuppression", import_non_max_suppression},
    {"TopK", import_top_k},
    {"Unique", import_unique},
};

}  // namespace

std::span<const Handler> selection_handlers() { return selection_table; }

}  // namespace tenon::onnx
