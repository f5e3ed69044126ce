#include "frontends/onnx/import_node.h"

namespace tenon::frontends::onnx {
namespace {

void import_string_split(NodeImport& node) {
  std::vector<Attr> attrs{{"delimiter", node.text("delimiter")}};
  if (node.has_attr("maxsplit")) attrs.emplace_back("max_splits", node.integer("maxsplit"));
  std::vector<std::string> names = node.output_names(2);
  if (names[0] == "_") names[0].clear();
  node.outputs(node.build.call_all("string_split", {node.input(0)}, attrs, std::move(names)));
}

constexpr Handler text_table[] = {
    {"StringSplit", import_string_split},
};

}  // namespace

std::span<const Handler> text_handlers() { return text_table; }

}  // namespace tenon::frontends::onnx
