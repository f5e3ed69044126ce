#include "ops/definition/derived_gradient.h"

#include "base/error.h"
#include "expr/derivative.h"
#include "expr/lowering.h"
#include "ir/text.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::inline ops::derived_gradient_op {
namespace {

using Integers = std::vector<std::int64_t>;

struct Attrs {
  /// Name of the op.
  std::string of;
  /// Attributes of the op in text form.
  std::string settings;
  /// Position of the operand to differentiate by.
  std::int64_t by = 0;
  /// Positions of the op's operands that `values` begins with.
  Integers operands;
  /// Positions of the results whose gradients follow in `values`.
  Integers results;
};

std::size_t place_of(const Attrs& attrs) {
  for (std::size_t k = 0; k < attrs.operands.size(); ++k) {
    if (attrs.operands[k] == attrs.by) return k;
  }
  throw Error("derived_gradient: `by` is not among the operands")
      .expected("one of ", attrs.operands.size(), " positions")
      .got(attrs.by);
}

void require_positions(const Attrs& attrs, const OpDef& op, std::size_t value_count) {
  if (attrs.operands.size() + attrs.results.size() != value_count) {
    throw Error("derived_gradient: a value for each operand and result is needed")
        .expected(attrs.operands.size() + attrs.results.size())
        .got(value_count);
  }
  const bool any_operands = !op.operands.empty() && op.operands.back().is_variadic;
  for (std::int64_t position : attrs.operands) {
    const bool is_one =
        position >= 0 &&
        position < static_cast<std::int64_t>(any_operands ? value_count : op.operands.size());
    if (!is_one)
      throw Error(concat("derived_gradient: ", op.name, " has no such operand")).got(position);
  }
  for (std::int64_t position : attrs.results) {
    const bool is_one = position >= 0 && position < static_cast<std::int64_t>(op.results.size());
    if (!is_one)
      throw Error(concat("derived_gradient: ", op.name, " has no such result")).got(position);
  }
}

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  const OpDef& op = find_op(attrs.of);
  if (!op.lower) throw Error(concat("derived_gradient: nothing says what ", op.name, " computes"));
  const std::vector<TensorType> types = in.variadic("values");
  require_positions(attrs, op, types.size());
  for (const TensorType& type : types) {
    if (!type.layout.is_empty())
      throw Error("derived_gradient: values in layouts are not taken").got(type);
  }
  return types[place_of(attrs)];
}

// Renumbers the operands of an expression: operand `positions[k]` of the op is value k.
class Renumbering {
 public:
  explicit Renumbering(const Integers& positions) : positions_(positions) {}

  Expr operator()(const Expr& expr) {
    const auto known = made_.find(&expr.node());
    if (known != made_.end()) return known->second;
    ExprNode node = expr.node();
    for (Expr& argument : node.args) argument = (*this)(argument);
    if (node.kind == ExprKind::Operand) {
      const auto found = std::ranges::find(positions_, static_cast<std::int64_t>(node.operand));
      node.operand = static_cast<std::size_t>(found - positions_.begin());
    }
    return made_[&expr.node()] = Expr(std::make_shared<const ExprNode>(std::move(node)));
  }

 private:
  const Integers& positions_;
  std::unordered_map<const ExprNode*, Expr> made_;
};

TensorType type_of(const Expr& value) { return {value.dtype(), value.dims(), {}}; }

void lower(const Attrs& attrs, Lowering& op) {
  const OpDef& of = find_op(attrs.of);
  const std::vector<Expr> values = op.variadic("values");
  std::vector<Type> operands(of.operands.size()), results(of.results.size());
  for (std::size_t k = 0; k < attrs.operands.size(); ++k) {
    const auto position = static_cast<std::size_t>(attrs.operands[k]);
    if (position >= operands.size()) operands.resize(position + 1);
    operands[position] = type_of(values[k]);
  }
  std::vector<Expr> flows(results.size());
  for (std::size_t k = 0; k < attrs.results.size(); ++k) {
    const auto position = static_cast<std::size_t>(attrs.results[k]);
    flows[position] = values[attrs.operands.size() + k];
    results[position] = type_of(flows[position]);
  }
  const std::vector<Expr> given =
      lower_op(of, parse_attributes(attrs.settings, of), operands, results);
  Renumbering renumbered(attrs.operands);
  std::vector<Expr> exprs;
  for (const Expr& expr : given) exprs.push_back(expr.is_defined() ? renumbered(expr) : expr);
  const std::size_t place = place_of(attrs);
  const Expr gradient = expr_gradient(exprs, flows, place);
  op.define("dx", gradient.is_defined()
                      ? gradient
                      : broadcast(literal(values[place].dtype(), 0), values[place].dims()));
}

std::string text_of(const OpDef& op, const Attributes& attrs) {
  std::string text;
  for (const AttrDef& def : op.attrs) {
    const AttrValue* value = attrs.find(def.name);
    if (!value) continue;
    const auto* word = std::get_if<std::string>(value);
    const bool is_bare = word && def.kind == AttrKind::Word;
    text += concat(text.empty() ? "{" : ", ", def.name, " = ",
                   is_bare ? print_name(*word) : print(*value));
  }
  return text.empty() ? text : text + "}";
}

// The second derivative is the derived gradient of the derived gradient.
void gradient(const Attrs&, Gradient& op) { add_derived_gradient(op, "dx"); }

}  // namespace

TENON_DEFINE_OP(derived_gradient) = OpSpec<Attrs>{
    .name = "derived_gradient",
    .summary =
        "the gradient of the op `of` by one of its operands, from what that op computes; `values` "
        "are its "
        "operands, then the gradients by its results",
    .operands = {variadic("values")},
    .results = {"dx"},
    .attrs = {{"of", &Attrs::of, required},
              {"settings", &Attrs::settings},
              {"by", &Attrs::by},
              {"operands", &Attrs::operands},
              {"results", &Attrs::results}},
    .infer = infer,
    .lower = lower,
    .gradient = gradient,
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::derived_gradient_op

namespace tenon::inline ops {

void add_derived_gradient(Gradient& op, std::string_view result, std::string_view by) {
  using namespace derived_gradient_op;
  Builder& build = op.build();
  const NodeId id = build.graph().value(ValueId(op.result(result).id())).producer;
  const Node node = build.graph().node(id);
  const auto type = [&](ValueId value) { return build.graph().value(value).type; };
  Integers operands, results;
  std::vector<Var> values;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (!node.operands[k]) continue;
    if (k < node.op->operands.size() && node.op->operands[k].is_dynamic_attribute) {
      throw Error(concat("cannot differentiate through ", node.op->name, ": '",
                         node.op->operands[k].name, "' is only known at run time"),
                  ErrorKind::Unsupported);
    }
    operands.push_back(static_cast<std::int64_t>(k));
    values.emplace_back(&build, node.operands[k].index());
  }
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if (!node.results[k] || !is_float(type(node.results[k]).tensor().dtype)) continue;
    results.push_back(static_cast<std::int64_t>(k));
    values.push_back(op.upstream(k));
  }
  for (const Var value : values) {
    const TensorType& taken = build.type(value).tensor();
    if (taken.layout.is_empty()) continue;
    throw Error(concat("cannot differentiate through ", node.op->name, " in a layout"),
                ErrorKind::Unsupported)
        .got(taken);
  }
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (!node.operands[k] || !is_float(type(node.operands[k]).tensor().dtype)) continue;
    if (!by.empty() && node.op->operand_index(by) != k) continue;
    op.add(k, build.call("derived_gradient", values,
                         {{"of", node.op->name},
                          {"settings", text_of(*node.op, node.attrs)},
                          {"by", static_cast<std::int64_t>(k)},
                          {"operands", operands},
                          {"results", results}}));
  }
}

}  // namespace tenon::inline ops
