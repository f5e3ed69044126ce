#include "frontends/onnx/window_attrs.h"

#include "base/error.h"

namespace tenon::onnx {
namespace {

std::string auto_pad_word(const NodeImport& node) {
  const std::string name = node.text("auto_pad", "NOTSET");
  if (name == "NOTSET" || name.empty()) return "none";
  if (name == "SAME_UPPER") return "same_upper";
  if (name == "SAME_LOWER") return "same_lower";
  if (name == "VALID") return "valid";
  throw Error(concat(node.op_type(), ": auto_pad is none of those that ONNX knows"))
      .expected("NOTSET, SAME_UPPER, SAME_LOWER or VALID")
      .got(name);
}

}  // namespace

std::vector<Attr> window_attrs(const NodeImport& node) {
  const std::string auto_pad = auto_pad_word(node);
  std::vector<Attr> attrs{{"strides", node.integers("strides")},
                          {"dilations", node.integers("dilations")},
                          {"auto_pad", auto_pad}};
  // Old models state both; pads count only without auto_pad.
  if (auto_pad == "none") attrs.emplace_back("pads", node.integers("pads"));
  return attrs;
}

std::vector<Attr> convolution_attrs(const NodeImport& node) {
  std::vector<Attr> attrs = window_attrs(node);
  attrs.emplace_back("groups", node.integer("group", 1));
  return attrs;
}

}  // namespace tenon::onnx
