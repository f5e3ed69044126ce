#include "base/text.h"
#include "frontends/megengine/elemwise.h"
#include "frontends/megengine/importer.h"
#include "ir/text.h"
#include "ops/registry.h"

#include <algorithm>

namespace tenon::megengine {
namespace {

// What reduces along an axis, in the order of `reduce_modes`.
constexpr std::string_view kReductions[] = {"reduce_sum", "reduce_sum_square", "reduce_prod",
                                            "reduce_min", "reduce_max",        "reduce_mean"};
// Stands for "to the shape that the second input tells".
constexpr std::int64_t kNoAxis = (std::int64_t{1} << 31) - 1;

}  // namespace

Var Importer::as_scalar(Var value) {
  const Constant* constant = builder_.graph().constant_of(ValueId(value.id()));
  if (constant != nullptr && constant->kind() == Constant::Kind::Dense && constant->size() == 1) {
    return builder_.constant(constant->stored().reshaped({}));
  }
  return builder_.call("reshape", {value}, {{"shape", Attr::Integers{}}});
}

void Importer::elemwise() {
  // Without a footprint the mode is still what the name starts with.
  std::string from_name = short_name(opr().name);
  from_name.resize(std::min(from_name.find('['), from_name.size()));
  const std::string name = param().text("mode", from_name);
  const ElemwiseMode* mode = find_elemwise_mode(name);
  if (mode == nullptr) unsupported(concat("mode ", name.substr(0, 60)));
  std::vector<Var> operands = inputs();
  if (operands.size() != mode->operand_count) {
    throw Error(concat("mode ", name, " has another number of operands"))
        .expected(mode->operand_count)
        .got(operands.size());
  }
  // Comparisons give truth values here, and numbers in MegEngine's older versions.
  const auto element = [&](Var operand) {
    return builder_.type(operand).is_tensor() ? builder_.type(operand).tensor().dtype : DType::F32;
  };
  const auto number = std::find_if(operands.begin(), operands.end(),
                                   [&](Var operand) { return element(operand) != DType::Bool; });
  if (number != operands.end()) {
    const std::string dtype = to_string(element(*number));
    for (Var& operand : operands) {
      if (element(operand) == DType::Bool)
        operand = builder_.call("cast", {operand}, {{"to", dtype}});
    }
  }
  if (mode->op == "clip") {
    for (std::size_t k = 1; k < operands.size(); ++k) {
      if (extents(operands[k]) == Extents{1}) operands[k] = as_scalar(operands[k]);
    }
  }
  define(0, mode->op.empty() ? mode->build(builder_, operands) : builder_.call(mode->op, operands));
}

void Importer::power() {
  require_param("exp");
  const Var base = input(0);
  define(0, builder_.call("pow", {base, builder_.scalar(param().real("exp", 1), base)}));
}

void Importer::reduce() {
  std::string mode = param().text("mode", "");
  if (mode.empty()) {
    // "reduce4" in the name.
    const std::string& name = opr().name;
    const std::size_t number = name.starts_with("reduce") && name.size() > 6
                                   ? static_cast<std::size_t>(name[6] - '0')
                                   : 99;
    if (number >= reduce_modes().size()) unsupported("no mode is stated");
    mode = reduce_modes()[number];
  }
  const auto found = std::find(reduce_modes().begin(), reduce_modes().end(), mode);
  if (found == reduce_modes().end()) unsupported(concat("mode ", mode.substr(0, 60)));
  const std::string_view op = kReductions[found - reduce_modes().begin()];
  const Var x = input(0);
  const Extents from = extents(x);
  std::int64_t axis = param().integer("axis", kNoAxis);
  if (axis != kNoAxis) {
    const auto rank = static_cast<std::int64_t>(from.size());
    if (axis < -rank || axis >= rank)
      throw Error("there is no such axis").got("axis ", axis, " of ", to_text(from));
    define(0, builder_.call(op, {x}, {{"axes", Attr::Integers{axis}}}));
    return;
  }
  const Extents to = input_count() > 1 ? target() : stated_output(0);
  if (to == Extents{1} && from.size() != 1) {  // MegEngine's scalar
    const Var all = builder_.call(op, {x}, {{"keep_axes", false}});
    define(0, builder_.call("reshape", {all}, {{"shape", Extents{1}}}));
    return;
  }
  if (to.size() != from.size())
    throw Error("the target has another rank").got(to_text(from), " to ", to_text(to));
  Attr::Integers axes;
  for (std::size_t k = 0; k < to.size(); ++k) {
    if (to[k] == from[k]) continue;
    if (to[k] != 1)
      throw Error("the target is no reduction").got(to_text(from), " to ", to_text(to));
    axes.push_back(static_cast<std::int64_t>(k));
  }
  if (axes.empty()) {
    forward(0, x);
  } else {
    define(0, builder_.call(op, {x}, {{"axes", axes}}));
  }
}

void Importer::softmax() {
  define(0, builder_.call("softmax", {input(0)}, {{"axis", param().integer("axis", -1)}}));
}

void Importer::convert() {
  const std::size_t var = index_.outputs[opr_].at(0);
  const Var x = input(0);
  std::optional<DType> dtype = dtype_of(param().text("dtype", ""));
  if (!dtype) dtype = stated_dtype(var, extents(x));
  if (!dtype) {
    // "asFloat32(…)" names its target.
    const std::string start = short_name(opr().name);
    const std::size_t end = std::min(start.find('['), start.size());
    if (start.starts_with("as")) dtype = dtype_of(std::string_view(start).substr(2, end - 2));
  }
  if (!dtype) unsupported("the element type is not stated");
  define(0, builder_.call("cast", {x}, {{"to", to_string(*dtype)}}));
}

// An operator of Tenon's own, as `write.cpp` puts it down: attributes and bodies in their text
// form, positions of operands and results where some are missing.
void Importer::tenon_operator() {
  const OpDef& op = *tenon_op_of(opr().type);
  const Param given = param();
  const auto positions = [&](std::string_view name, std::size_t count) {
    Extents list;
    if (const Json* found = given.find(name)) {
      if (const auto* array = std::get_if<Json::Array>(&found->value)) {
        for (const Json& element : *array) {
          const auto* number = std::get_if<std::int64_t>(&element.value);
          const std::int64_t low = list.empty() ? 0 : list.back() + 1;
          if (number == nullptr || *number < low || *number > low + 64) {
            throw Error(concat("'", name, "' is not a list of positions"));
          }
          list.push_back(*number);
        }
      }
      if (list.size() != count)
        throw Error(concat("'", name, "' has another length")).expected(count).got(list.size());
      return list;
    }
    for (std::size_t k = 0; k < count; ++k) list.push_back(static_cast<std::int64_t>(k));
    return list;
  };
  std::vector<Var> operands;
  std::vector<Var> given_operands = inputs();
  // A scalar is a vector of one element in MegEngine.
  if (const Json* scalars = given.find("scalars")) {
    if (const auto* list = std::get_if<Json::Array>(&scalars->value)) {
      for (const Json& entry : *list) {
        const auto* position = std::get_if<std::int64_t>(&entry.value);
        if (position == nullptr || *position < 0 ||
            *position >= static_cast<std::int64_t>(given_operands.size())) {
          throw Error("'scalars' is not a list of positions");
        }
        Var& operand = given_operands[static_cast<std::size_t>(*position)];
        operand = as_scalar(operand);
      }
    }
  }
  const Extents operand_positions = positions("operands", given_operands.size());
  for (std::size_t k = 0; k < given_operands.size(); ++k) {
    operands.resize(static_cast<std::size_t>(operand_positions[k]) + 1);
    operands.back() = given_operands[k];
  }
  std::vector<std::size_t> outputs;
  for (std::size_t k = 0; k < index_.outputs[opr_].size(); ++k) {
    if (!is_workspace(profile_.graph_exec.vars[index_.outputs[opr_][k]])) outputs.push_back(k);
  }
  std::vector<std::string> names;
  const Extents result_positions = positions("results", outputs.size());
  for (std::int64_t position : result_positions) {
    names.resize(static_cast<std::size_t>(position) + 1, "_");
    names.back().clear();
  }
  std::vector<Graph> bodies;
  if (const Json* texts = given.find("bodies")) {
    if (const auto* list = std::get_if<Json::Array>(&texts->value)) {
      for (const Json& body : *list) {
        const auto* text = std::get_if<std::string>(&body.value);
        if (text == nullptr) throw Error("a body is not a text");
        bodies.push_back(parse_graph(*text, all_ops(), "body"));
      }
    }
  }
  const std::vector<Var> results =
      builder_.call_all(op.name, operands, parse_attributes(given.text("attributes", ""), op),
                        std::move(names), std::move(bodies));
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const auto position = static_cast<std::size_t>(result_positions[k]);
    if (position < results.size() && results[position].is_valid())
      define(outputs[k], results[position]);
  }
}

}  // namespace tenon::megengine
