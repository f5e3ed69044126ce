#pragma once

#include "frontends/relay/ast.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::relay {

struct AttributeDef {
  std::string name;
  /// none: always printed
  std::optional<AttributeValue> default_value;
};

/// What Relay declares of an operator: how many arguments and which attributes, in the order they
/// are printed in.
struct OperatorDef {
  std::string name;
  std::size_t least_arguments = 0, most_arguments = 0;
  std::vector<AttributeDef> attributes;

  const AttributeDef* find_attribute(std::string_view attribute) const;
};

/// Null for an operator that is not in the table.
const OperatorDef* find_operator(std::string_view name);

}  // namespace tenon::relay
