#pragma once

#include "documents/relay/ast.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::documents::relay {

struct AttributeDef {
  std::string name;
  /// nullopt: always printed
  std::optional<AttributeValue> default_value;
};

/// Relay's declaration of an operator: number of arguments, and attributes in printing order.
struct OperatorDef {
  std::string name;
  std::size_t least_arguments = 0, most_arguments = 0;
  std::vector<AttributeDef> attributes;

  const AttributeDef* find_attribute(std::string_view attribute) const;
};

/// Returns null for an unknown operator.
const OperatorDef* find_operator(std::string_view name);

}  // namespace tenon::documents::relay
