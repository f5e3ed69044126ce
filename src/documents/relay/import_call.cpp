#include "documents/relay/import_call.h"

#include "base/text.h"
#include "documents/relay/op_table.h"
#include "documents/relay/relabel.h"
#include "documents/relay/types.h"

#include <algorithm>

namespace tenon::documents::relay {

ImportedValue ImportedValue::tuple(std::vector<ImportedValue> parts) {
  ImportedValue meaning;
  meaning.kind = Kind::Tuple;
  for (const ImportedValue& part : parts) meaning.depth = std::max(meaning.depth, part.depth + 1);
  meaning.fields = std::move(parts);
  return meaning;
}

std::size_t ImportedValue::size() const {
  if (kind != Kind::Tuple) return 1;
  std::size_t count = 0;
  for (const ImportedValue& field : fields) count += field.size();
  return count;
}

ImportedValue ImportedValue::with_values(const std::vector<Var>& values, std::size_t& next) const {
  if (kind == Kind::Value) return values[next++];
  std::vector<ImportedValue> made;
  for (const ImportedValue& field : fields) made.push_back(field.with_values(values, next));
  return tuple(std::move(made));
}

AttributeValue to_attribute(std::int64_t number) { return {IntegerLiteral{number, "int32"}}; }
AttributeValue to_attribute(const Integers& numbers) {
  AttributeList list;
  for (const std::int64_t number : numbers) list.push_back(to_attribute(number));
  return {std::move(list)};
}
AttributeValue to_attribute(double number) { return {RealLiteral{number, "float32"}}; }
AttributeValue to_attribute(bool flag) { return {flag}; }
AttributeValue to_attribute(std::string text) { return {std::move(text)}; }

CallImport::CallImport(const RelayModule& module, const RelayExpr& call,
                       std::vector<ImportedValue> arguments, Builder& builder,
                       Materialise materialise, Claim claim)
    : module_(module),
      call_(call),
      op_(module.at(call.parts[0]).name),
      arguments_(std::move(arguments)),
      builder_(builder),
      materialise_(std::move(materialise)),
      claim_(std::move(claim)) {}

Var CallImport::value(std::size_t position, const WeightRole& role) const {
  const ExprId id = call_.parts[position + 1];
  if (module_.at(id).kind == RelayExpr::Kind::Constant) return materialise_(id, role);
  const ImportedValue& argument = arguments_[position];
  if (argument.kind != ImportedValue::Kind::Value) {
    throw error("an argument is no tensor").got("argument ", position);
  }
  return argument.value;
}

std::vector<Var> CallImport::values(std::size_t position) const {
  const ImportedValue& argument = arguments_[position];
  if (argument.kind != ImportedValue::Kind::Tuple)
    throw error("an argument is no tuple").got("argument ", position);
  const RelayExpr& expr = module_.at(call_.parts[position + 1]);
  std::vector<Var> values;
  for (std::size_t k = 0; k < argument.fields.size(); ++k) {
    const bool is_constant = expr.kind == RelayExpr::Kind::Tuple &&
                             module_.at(expr.parts[k]).kind == RelayExpr::Kind::Constant;
    if (!is_constant && argument.fields[k].kind != ImportedValue::Kind::Value) {
      throw error("a field of a tuple is no tensor").got("field ", k);
    }
    values.push_back(is_constant ? materialise_(expr.parts[k], {}) : argument.fields[k].value);
  }
  return values;
}

Dims CallImport::dims(std::size_t position) const {
  const RelayExpr& expr = module_.at(call_.parts[position + 1]);
  if (expr.kind == RelayExpr::Kind::Constant && expr.type &&
      expr.type->kind == RelayType::Kind::Tensor) {
    return {expr.type->dims.begin(), expr.type->dims.end()};
  }
  return type(value(position)).dims;
}

const TensorType& CallImport::type(Var value) const {
  const Type& type = builder_.type(value);
  if (!type.is_tensor()) throw error("the type of an argument is only known at run time");
  return type.tensor();
}

const AttributeValue* CallImport::literal(std::size_t position) const {
  const RelayExpr& expr = module_.at(call_.parts[position + 1]);
  return expr.kind == RelayExpr::Kind::Scalar ? &expr.literal : nullptr;
}

const AttributeValue& CallImport::attribute(std::string_view name) const {
  for (const RelayAttribute& attribute : call_.attributes) {
    if (attribute.name == name) return attribute.value;
  }
  const OperatorDef* def = find_operator(op_);
  const AttributeDef* attribute = def ? def->find_attribute(name) : nullptr;
  if (attribute == nullptr || !attribute->default_value)
    throw error(concat("the attribute '", name, "' is missing"));
  return *attribute->default_value;
}

bool CallImport::has(std::string_view name) const {
  for (const RelayAttribute& attribute : call_.attributes) {
    if (attribute.name == name) return !std::holds_alternative<NoneLiteral>(attribute.value.value);
  }
  const OperatorDef* def = find_operator(op_);
  const AttributeDef* attribute = def ? def->find_attribute(name) : nullptr;
  return attribute && attribute->default_value &&
         !std::holds_alternative<NoneLiteral>(attribute->default_value->value);
}

std::int64_t CallImport::integer(std::string_view name) const {
  if (const auto* number = std::get_if<IntegerLiteral>(&attribute(name).value))
    return number->value;
  throw error(concat("the attribute '", name, "' is no whole number"))
      .got(attribute_text(attribute(name)));
}

Integers CallImport::integers(std::string_view name) const {
  const AttributeValue& held = attribute(name);
  if (std::holds_alternative<IntegerLiteral>(held.value)) return {integer(name)};
  const auto* list = std::get_if<AttributeList>(&held.value);
  if (list == nullptr)
    throw error(concat("the attribute '", name, "' is no list")).got(attribute_text(held));
  Integers numbers;
  for (const AttributeValue& item : *list) {
    const auto* number = std::get_if<IntegerLiteral>(&item.value);
    if (number == nullptr)
      throw error(concat("the attribute '", name, "' is no list of whole numbers"))
          .got(attribute_text(held));
    numbers.push_back(number->value);
  }
  return numbers;
}

double CallImport::real(std::string_view name) const {
  const AttributeValue& held = attribute(name);
  if (const auto* number = std::get_if<RealLiteral>(&held.value)) return number->value;
  if (const auto* number = std::get_if<IntegerLiteral>(&held.value))
    return static_cast<double>(number->value);
  throw error(concat("the attribute '", name, "' is no number")).got(attribute_text(held));
}

bool CallImport::flag(std::string_view name) const {
  const AttributeValue& held = attribute(name);
  if (const auto* value = std::get_if<bool>(&held.value)) return *value;
  if (const auto* number = std::get_if<IntegerLiteral>(&held.value)) return number->value != 0;
  throw error(concat("the attribute '", name, "' is neither True nor False"))
      .got(attribute_text(held));
}

std::string CallImport::text(std::string_view name) const {
  if (const auto* held = std::get_if<std::string>(&attribute(name).value)) return *held;
  throw error(concat("the attribute '", name, "' is no text")).got(attribute_text(attribute(name)));
}

std::optional<DType> CallImport::dtype(std::string_view name) const {
  const std::string word = text(name);
  if (word.empty()) return std::nullopt;
  const std::optional<DType> dtype = to_dtype(word);
  if (!dtype) throw error(concat("the attribute '", name, "' is no element type")).got(quote(word));
  return dtype;
}

void CallImport::claim(std::string_view name, const AttributeValue& should_be) const {
  for (const RelayAttribute& attribute : call_.attributes) {
    if (attribute.name != name || std::holds_alternative<NoneLiteral>(attribute.value.value))
      continue;
    claim_(concat("attribute ", name), attribute.position, attribute_text(attribute.value),
           attribute_text(should_be));
  }
}

Var CallImport::as_layout(Var value, const std::string& layout, std::string_view plain) const {
  const TensorType& type_now = type(value);
  if (layout == plain && (type_now.layout.is_empty() || type_now.layout.text() == plain)) {
    if (type_now.rank() != plain.size())
      throw error("an argument has another rank than its layout").expected(layout).got(type_now);
    return value;
  }
  return relabel(builder_, value, Layout(layout));
}

Var CallImport::cast(Var value, DType to) const {
  if (type(value).dtype == to) return value;
  return builder_.call("cast", {value}, {{"to", to_string(to)}});
}

Error CallImport::error(std::string summary) const { return Error(concat(op_, ": ", summary)); }
Error CallImport::unsupported(std::string summary) const {
  return Error(concat(op_, ": ", summary), ErrorKind::Unsupported);
}

}  // namespace tenon::documents::relay
