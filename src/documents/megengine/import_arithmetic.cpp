#include "base/text.h"
#include "documents/megengine/elemwise.h"
#include "documents/megengine/importer.h"
#include "documents/native_node.h"

#include <algorithm>

namespace tenon::documents::megengine {
namespace {

// Reductions along an axis, in the order of `reduce_modes`.
constexpr std::string_view kReductions[] = {"reduce_sum", "reduce_sum_square", "reduce_prod",
                                            "reduce_min", "reduce_max",        "reduce_mean"};
// Sentinel axis: reduce to the shape in the second input.
constexpr std::int64_t kNoAxis = (std::int64_t{1} << 31) - 1;

}  // namespace

Var MegEngineImporter::as_scalar(Var value) {
  const Constant* constant = builder_.graph().constant_of(ValueId(value.id()));
  if (constant != nullptr && constant->kind() == Constant::Kind::Dense && constant->size() == 1) {
    return builder_.constant(constant->stored().reshaped({}));
  }
  return builder_.call("reshape", {value}, {{"shape", Attr::Integers{}}});
}

void MegEngineImporter::elemwise() {
  // Without a footprint, the name starts with the mode.
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
  // Comparisons return bool here, and numbers in MegEngine's older versions.
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

void MegEngineImporter::power() {
  require_param("exp");
  const Var base = input(0);
  define(0, builder_.call("pow", {base, builder_.scalar(param().real("exp", 1), base)}));
}

void MegEngineImporter::reduce() {
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
  define_from(x, axes.empty() ? x : builder_.call(op, {x}, {{"axes", axes}}));
}

void MegEngineImporter::softmax() {
  define(0, builder_.call("softmax", {input(0)}, {{"axis", param().integer("axis", -1)}}));
}

void MegEngineImporter::convert() {
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

void MegEngineImporter::tenon_operator() {
  const std::vector<Var> results =
      build_native(parse_native(param().text(kOwnParam, "")), builder_, inputs());
  std::size_t next = 0;
  for (std::size_t k = 0; k < index_.outputs[opr_].size(); ++k) {
    if (is_workspace(profile_.graph_exec.vars[index_.outputs[opr_][k]])) continue;
    if (next < results.size()) define(k, results[next++]);
  }
}

}  // namespace tenon::documents::megengine
