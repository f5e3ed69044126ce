#include "ops/families/captures.h"

#include <algorithm>

namespace tenon::inline ops {

std::size_t captured_count(const Node& node) {
  const auto number = [&](std::string_view name, std::int64_t otherwise) {
    const AttrValue* value = node.attrs.find(name);
    return static_cast<std::size_t>(value ? std::get<Dim>(*value).constant() : otherwise);
  };
  const std::size_t count = node.operands.size();
  if (node.op->name == "if") return count - 1;
  if (node.op->name == "loop") return count - std::min(count, 2 + number("carried_count", 0));
  if (node.op->name == "scan") return count - number("state_count", 0) - number("input_count", 1);
  if (node.op->name == "sequence_map") return count - number("input_count", 1);
  return 0;
}

}  // namespace tenon::inline ops
