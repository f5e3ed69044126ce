#include "frontends/relay/composite.h"

#include "base/error.h"
#include "frontends/relay/import_call.h"
#include "ir/text.h"
#include "ops/registry.h"

namespace tenon::relay {
namespace {

constexpr std::size_t kMostResults = 64;

const std::string* text_of(const Expr& function, std::string_view name) {
  for (const Attribute& attribute : function.attributes) {
    if (attribute.name == name) return std::get_if<std::string>(&attribute.value.value);
  }
  return nullptr;
}

}  // namespace

std::optional<Composite> composite_of(const Expr& function) {
  const std::string* name = text_of(function, "Composite");
  if (name == nullptr || !name->starts_with(kCompositePrefix)) return std::nullopt;
  Composite composite;
  composite.op = name->substr(kCompositePrefix.size());
  if (const std::string* attributes = text_of(function, "tenon_attributes"))
    composite.attributes = *attributes;
  if (const std::string* operands = text_of(function, "tenon_operands")) {
    for (const char c : *operands) composite.is_missing.push_back(c == '_');
  }
  if (function.annotation && function.annotation->kind == RelayType::Kind::Tuple) {
    composite.result_count = std::min(kMostResults, function.annotation->parts.size());
  }
  return composite;
}

std::vector<Attribute> composite_attributes(const Composite& composite) {
  std::vector<Attribute> attributes = {
      {"Composite", to_attribute(std::string(kCompositePrefix) + composite.op), 0}};
  if (!composite.attributes.empty()) {
    attributes.push_back({"tenon_attributes", to_attribute(composite.attributes), 0});
  }
  std::string operands;
  bool has_gap = false;
  for (const bool is_missing : composite.is_missing) {
    operands += is_missing ? '_' : 'x';
    has_gap = has_gap || is_missing;
  }
  if (has_gap) attributes.push_back({"tenon_operands", to_attribute(operands), 0});
  return attributes;
}

std::vector<Var> build_composite(Builder& builder, const Composite& composite,
                                 const std::vector<Var>& values, std::vector<Graph> bodies) {
  const OpDef& op = find_op(composite.op);
  std::vector<Var> operands;
  std::size_t next = 0;
  for (const bool is_missing : composite.is_missing) {
    const bool has_value = !is_missing && next < values.size();
    operands.push_back(has_value ? values[next++] : Var());
  }
  while (next < values.size()) operands.push_back(values[next++]);
  return builder.call_all(composite.op, operands, parse_attributes(composite.attributes, op),
                          std::vector<std::string>(composite.result_count, ""), std::move(bodies));
}

}  // namespace tenon::relay
