#include "frontends/onnx/window_attrs.h"

#include "base/error.h"
#include "ir/kept_constraint.h"

#include <algorithm>
#include <iterator>

namespace tenon::frontends::onnx {
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

void require_kernel_shape(const NodeImport& node, const Dims& weights) {
  const std::vector<std::int64_t> stated = node.integers("kernel_shape");
  bool fits = stated.empty() || stated.size() + 2 == weights.size();
  for (std::size_t k = 0; fits && k < stated.size(); ++k) {
    const Dim& extent = weights[k + 2];
    fits = !provably_different(extent, stated[k]);
    if (!fits || extent.is_constant()) continue;
    add_constraint(node.build.graph(),
                   {ExtentRelation::Equal, extent, stated[k], std::string(node.op_type()),
                    concat("attribute 'kernel_shape' and the weights' axis ", k + 2)});
  }
  if (fits) return;
  throw Error("attribute 'kernel_shape' is not that of the weights")
      .expected(
          Dims(weights.begin() + std::min<std::ptrdiff_t>(2, std::ssize(weights)), weights.end()))
      .got(Dims(stated.begin(), stated.end()));
}

}  // namespace

std::vector<Attr> window_attrs(const NodeImport& node) {
  const std::string auto_pad = auto_pad_word(node);
  std::vector<Attr> attrs{{"strides", node.integers("strides")},
                          {"dilations", node.integers("dilations")},
                          {"auto_pad", auto_pad}};
  // Old models state both; pads are valid only without auto_pad.
  if (auto_pad == "none") attrs.emplace_back("pads", node.integers("pads"));
  return attrs;
}

std::vector<Attr> convolution_attrs(const NodeImport& node, std::size_t weights) {
  if (const Type& type = node.type(node.input(weights)); type.is_tensor()) {
    require_kernel_shape(node, type.tensor().dims);
  }
  std::vector<Attr> attrs = window_attrs(node);
  attrs.emplace_back("groups", node.integer("group", 1));
  return attrs;
}

}  // namespace tenon::frontends::onnx
