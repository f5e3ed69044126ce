#include "frontends/onnx/body_call.h"

namespace tenon::frontends::onnx {

void call_with_bodies(NodeImport& node, std::string_view op, const std::vector<Var>& operands,
                      const std::vector<Attr>& attrs, std::vector<Graph> bodies,
                      std::size_t result_count) {
  std::vector<std::string> names = node.output_names(result_count);
  for (std::string& name : names) {
    if (name == "_") name.clear();  // variadic results cannot be omitted
  }
  node.outputs(node.build.call_all(op, operands, attrs, std::move(names), std::move(bodies)));
}

}  // namespace tenon::frontends::onnx
