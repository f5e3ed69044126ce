#include "frontends/chainer/own_records.h"

#include "frontends/chainer/solver.h"
#include "ir/text.h"
#include "ops/registry.h"

namespace tenon::chainer {
namespace {

template <class T, class List, class Convert>
std::optional<Json> array_of(const List& list, Convert convert) {
  Json::Array array;
  for (const auto& each : list) {
    Json element;
    element.value.emplace<T>(convert(each));
    array.push_back(std::move(element));
  }
  Json json;
  json.value = std::move(array);
  return json;
}

template <class T>
Json json_from(T value) {
  Json json;
  json.value.emplace<T>(std::move(value));
  return json;
}

template <class T>
std::optional<std::vector<T>> list_of(const Json& json) {
  const auto* array = held_by<Json::Array>(json);
  if (array == nullptr) return std::nullopt;
  std::vector<T> list;
  for (const Json& element : *array) {
    const auto* value = held_by<T>(element);
    if (value == nullptr) return std::nullopt;
    list.push_back(*value);
  }
  return list;
}

std::optional<AttrValue> attr_from_text(const std::string& text, const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::Text:
    case AttrKind::Word:
      return AttrValue(text);
    case AttrKind::Element:
      if (const auto dtype = parse_dtype(text)) return AttrValue(*dtype);
      return std::nullopt;
    case AttrKind::Constant:
      return AttrValue(parse_constant(text));
    case AttrKind::Type:
      return AttrValue(parse_type(text));
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Json> json_of(const AttrValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return json_from<bool>(*flag);
  if (const auto* dim = std::get_if<Dim>(&value)) {
    if (!dim->is_constant()) return std::nullopt;
    return json_from<std::int64_t>(dim->constant());
  }
  if (const auto* real = std::get_if<double>(&value)) return json_from<double>(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return json_from<std::string>(*text);
  if (const auto* dtype = std::get_if<DType>(&value))
    return json_from<std::string>(to_string(*dtype));
  if (const auto* dims = std::get_if<Dims>(&value)) {
    if (!all_constant(*dims)) return std::nullopt;
    return array_of<std::int64_t>(*dims, [](const Dim& dim) { return dim.constant(); });
  }
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    return array_of<double>(*reals, [](double real) { return real; });
  }
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return array_of<std::string>(*texts, [](const std::string& text) { return text; });
  }
  if (const auto* constant = std::get_if<Constant>(&value))
    return json_from<std::string>(print(*constant));
  return json_from<std::string>(to_string(std::get<Type>(value)));
}

std::optional<AttrValue> attr_of(const Json& json, const AttrDef& def) {
  switch (def.kind) {
    case AttrKind::Bool:
      if (const auto* flag = held_by<bool>(json)) return AttrValue(*flag);
      return std::nullopt;
    case AttrKind::Integer:
      if (const auto* integer = held_by<std::int64_t>(json)) return AttrValue(Dim(*integer));
      return std::nullopt;
    case AttrKind::Real:
      if (const auto* real = held_by<double>(json)) return AttrValue(*real);
      return std::nullopt;
    case AttrKind::Integers:
      if (const auto list = list_of<std::int64_t>(json))
        return AttrValue(Dims(list->begin(), list->end()));
      return std::nullopt;
    case AttrKind::Reals:
      if (auto list = list_of<double>(json)) return AttrValue(*std::move(list));
      return std::nullopt;
    case AttrKind::Texts:
      if (auto list = list_of<std::string>(json)) return AttrValue(*std::move(list));
      return std::nullopt;
    default:
      if (const auto* text = held_by<std::string>(json)) return attr_from_text(*text, def);
      return std::nullopt;
  }
}

std::vector<Var> build_own(const FunctionView& view, Builder& build,
                           const std::vector<Var>& inputs) {
  const Function& function = view.function();
  const OpDef* op = all_ops().find(view.text(kOwnOp));
  if (op == nullptr) throw view.error(kOwnOp, "no operator has that name").got(view.text(kOwnOp));
  Attributes attrs;
  for (const AttrDef& def : op->attrs) {
    const Attribute* given = function.find(def.name);
    if (given == nullptr) continue;
    std::optional<AttrValue> value = attr_of(given->value, def);
    if (!value)
      throw view.error(def.name, concat("the attribute '", def.name, "' is of the wrong kind"));
    attrs.set(def.name, *std::move(value));
  }
  const auto list_at = [&](std::string_view name) -> const Json::Array* {
    const Attribute* given = function.find(name);
    if (given == nullptr) return nullptr;
    const auto* list = held_by<Json::Array>(given->value);
    if (list == nullptr || list->size() > (1U << 16))
      throw view.error(name, concat("'", name, "' is no list"));
    return list;
  };
  const auto position = [&](const Json& json, std::string_view name, std::size_t bound) {
    const auto* value = held_by<std::int64_t>(json);
    if (value == nullptr || *value < 0 || *value >= static_cast<std::int64_t>(bound)) {
      throw view.error(name, concat("'", name, "' names a position that is not there"));
    }
    return static_cast<std::size_t>(*value);
  };

  std::vector<Var> operands;
  const Json::Array* given_operands = list_at(kOwnOperands);
  if (given_operands == nullptr)
    throw view.error(kOwnOperands, "the record does not say its operands");
  for (const Json& operand : *given_operands) {
    if (std::holds_alternative<std::nullptr_t>(operand.value)) {
      operands.emplace_back();
    } else if (const auto* text = held_by<std::string>(operand)) {
      operands.push_back(build.constant(*text));
    } else {
      operands.push_back(inputs[position(operand, kOwnOperands, inputs.size())]);
    }
  }
  const std::size_t output_count = function.outputs.size();
  std::vector<std::string> names(output_count);
  std::vector<std::size_t> places;  // of each output among the results
  if (const Json::Array* results = list_at(kOwnResults)) {
    names.assign(results->size(), "_");
    places.assign(output_count, kNone);
    for (std::size_t k = 0; k < results->size(); ++k) {
      if (std::holds_alternative<std::nullptr_t>((*results)[k].value)) continue;
      places[position((*results)[k], kOwnResults, output_count)] = k;
      names[k].clear();
    }
  } else {
    for (std::size_t k = 0; k < output_count; ++k) places.push_back(k);
  }
  std::vector<Graph> bodies;
  if (const Json::Array* texts = list_at(kOwnBodies)) {
    for (const Json& text : *texts) {
      const auto* body = held_by<std::string>(text);
      if (body == nullptr) throw view.error(kOwnBodies, "a body is no text");
      bodies.push_back(parse_graph(*body, all_ops(), kOwnBodies));
    }
  }
  const std::vector<Var> made =
      build.call_all(op->name, operands, std::move(attrs), names, std::move(bodies));
  std::vector<Var> outputs;
  for (const std::size_t place : places) {
    if (place >= made.size() || !made[place].is_valid())
      throw view.error(kOwnResults, "an output is not among the results");
    outputs.push_back(made[place]);
  }
  return outputs;
}

}  // namespace tenon::chainer
