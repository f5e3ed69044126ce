#include "frontends/onnx/attributes.h"

#include "base/error.h"
#include "frontends/known_names.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <algorithm>
#include <tuple>
#include <unordered_set>

namespace tenon::frontends::onnx {
namespace {

struct Schema {
  std::string_view domain, op_type;
  int since = 1;
  /// separated by spaces
  std::string_view attributes;

  bool is_of(std::string_view other_domain, std::string_view other_type) const {
    return domain == other_domain && op_type == other_type;
  }
};

// By domain, operator and opset.
constexpr Schema schemas[] = {
#include "frontends/onnx/attributes.inc"
};

}  // namespace

std::string_view attribute_names(std::string_view domain, std::string_view op_type, int opset) {
  const auto key = [](const Schema& row) { return std::tuple(row.domain, row.op_type, row.since); };
  const auto next = std::ranges::upper_bound(schemas, std::tuple(domain, op_type, opset), {}, key);
  // An opset before the operator's first one has the attributes of the first.
  const Schema* row = next == std::begin(schemas) ? next : next - 1;
  if (!row->is_of(domain, op_type) && next != std::end(schemas)) row = next;
  return row->is_of(domain, op_type) ? row->attributes : "";
}

void require_known_attributes(const onnx_schema::NodeProto& node, std::string_view known) {
  std::unordered_set<std::string_view> seen;
  for (const auto& attr : node.attribute()) {
    const std::string& name = attr.name();
    if (!seen.insert(name).second) throw Error(concat("attribute '", name, "' is given twice"));
    if (!name.starts_with("__")) require_attribute(node.op_type(), name, known);
  }
}

}  // namespace tenon::frontends::onnx
