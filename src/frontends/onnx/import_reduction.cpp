#include "frontends/onnx/op_call.h"

#include <cctype>

namespace tenon::onnx {
namespace {

/// "ReduceLogSum" as Tenon spells it: "reduce_log_sum".
std::string snake_case(std::string_view name) {
  std::string text;
  for (char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isupper(byte) && !text.empty()) text += '_';
    text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

// Axes came as an attribute before opset 18 (13 for ReduceSum) and come as an input since.
void import_reduce(NodeImport& node) {
  OpCall call(node, snake_case(node.op_type()));
  call.operand("x", node.input(0))
      .attr({"keep_axes", node.integer("keepdims", 1) != 0})
      .attr({"noop_if_empty", node.integer("noop_with_empty_axes", 0) != 0});
  if (node.has_input(1)) {
    call.dynamic("axes", 1);
  } else {
    call.attr({"axes", node.integers("axes")});
  }
  node.output(call.result());
}

constexpr Handler reduction_table[] = {
    {"ReduceL1", import_reduce},     {"ReduceL2", import_reduce},
    {"ReduceLogSum", import_reduce}, {"ReduceLogSumExp", import_reduce},
    {"ReduceMax", import_reduce},    {"ReduceMean", import_reduce},
    {"ReduceMin", import_reduce},    {"ReduceProd", import_reduce},
    {"ReduceSum", import_reduce},    {"ReduceSumSquare", import_reduce},
};

}  // namespace

std::span<const Handler> reduction_handlers() { return reduction_table; }

}  // namespace tenon::onnx
