#include "frontends/onnx/plain_ops.h"

#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/op_call.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cctype>

namespace tenon::frontends::onnx {
namespace {

using Form = PlainAttr::Form;

std::string in_case(std::string text, int (*change)(int)) {
  for (char& letter : text) letter = static_cast<char>(change(static_cast<unsigned char>(letter)));
  return text;
}

std::vector<std::string_view> inputs_of(const PlainOp& row, const OpDef& op) {
  if (!row.inputs.empty()) return {row.inputs.begin(), row.inputs.end()};
  std::vector<std::string_view> names;
  for (const OperandDef& operand : op.operands) names.push_back(operand.name);
  return names;
}

Attr read_attr(const NodeImport& node, const PlainAttr& attr, AttrKind kind) {
  std::string name(attr.ours);
  switch (kind) {
    case AttrKind::Bool:
      return {std::move(name), node.integer(attr.theirs) != 0};
    case AttrKind::Integer:
      return {std::move(name), node.integer(attr.theirs)};
    case AttrKind::Real:
      return {std::move(name), node.real(attr.theirs)};
    case AttrKind::Element:
      return {std::move(name), to_string(node.element(attr.theirs, DType::F32))};
    case AttrKind::Integers:
      return {std::move(name), node.integers(attr.theirs)};
    case AttrKind::Reals:
      return {std::move(name), node.reals(attr.theirs)};
    case AttrKind::Texts:
      return {std::move(name), node.texts(attr.theirs)};
    default:
      break;
  }
  std::string text = node.text(attr.theirs);
  if (attr.form == Form::UpperCase) text = in_case(std::move(text), std::tolower);
  return {std::move(name), std::move(text)};
}

// Omits an empty list.
void add_attr(std::vector<OnnxAttr>& attrs, const NodeExport& node, const PlainAttr& attr) {
  const auto add = [&](auto value) {
    attrs.push_back({std::string(attr.theirs), std::move(value)});
  };
  const auto add_list = [&](auto list) {
    if (!list.empty() || attr.form == Form::Stated) add(std::move(list));
  };
  switch (node.node.op->find_attr(attr.ours)->kind) {
    case AttrKind::Bool:
      return add(std::int64_t{node.flag(attr.ours)});
    case AttrKind::Integer:
      return add(node.integer(attr.ours));
    case AttrKind::Real:
      return add(node.real(attr.ours));
    case AttrKind::Element:
      return add(std::int64_t{onnx_element_type(node.element(attr.ours))});
    case AttrKind::Integers:
      return add_list(node.integers(attr.ours));
    case AttrKind::Reals:
      return add_list(node.reals(attr.ours));
    case AttrKind::Texts:
      return add_list(node.texts(attr.ours));
    default:
      break;
  }
  const bool is_upper = attr.form == Form::UpperCase;
  add(is_upper ? in_case(node.text(attr.ours), std::toupper) : node.text(attr.ours));
}

// Returns an input for an attribute that is an input in ONNX; "" for the default.
std::string dynamic_input(NodeExport& node, std::string_view name) {
  const AttrDef& def = *node.node.op->find_attr(name);
  if (!node.has(name) && !node.has_attr(name)) return "";
  if (def.kind == AttrKind::Integer) return node.integer_input(name);
  if (def.kind == AttrKind::Reals) return node.reals_input(name);
  const AttrValue* given = node.node.attrs.find(name);
  const bool is_empty = given == nullptr || std::get<Dims>(*given).empty();
  return is_empty && !node.has(name) && !def.is_required ? "" : node.integers_input(name);
}

// Some operators gained integers, strings, wider bytes or additional modes in later opsets.
int opset_for_elements(const NodeExport& node) {
  const std::string_view op = node.node.op->name;
  const auto bits = [](const Type& type) { return info(type.tensor().dtype).bits; };
  if (op == "relu" && !is_float(node.operand_type("x").tensor().dtype)) return 14;
  if (op == "equal" && node.operand_type("a").tensor().dtype == DType::String) return 19;
  if (op == "quantize_linear" && bits(node.result_type()) == 16) return 21;
  if (op == "dequantize_linear" && bits(node.operand_type("x")) == 16) return 21;
  if (!op.starts_with("scatter_")) return 1;
  const std::string reduction = node.text("reduction");
  return reduction == "none" ? 1 : reduction == "add" || reduction == "mul" ? 16 : 18;
}

// Returns whether a node states an ONNX attribute with a value.
bool is_stated(const NodeImport& node, const PlainAttr& attr, const OpDef& op,
               const std::vector<std::string_view>& inputs) {
  const AttrDef& def = *op.find_attr(attr.ours);
  if (attr.form == Form::Former) {
    const auto input = std::ranges::find(inputs, attr.ours) - inputs.begin();
    return node.has_attr(attr.theirs) && !node.has_input(static_cast<std::size_t>(input));
  }
  if (!node.has_attr(attr.theirs)) return def.is_required;
  const bool may_be_none = attr.form == Form::Late && def.kind == AttrKind::Element;
  return !may_be_none || node.integer(attr.theirs) != 0;
}

}  // namespace

const PlainOp* find_plain(std::string_view op_type) {
  const auto found = std::ranges::find(plain_ops(), op_type, &PlainOp::op_type);
  return found == plain_ops().end() ? nullptr : &*found;
}

std::vector<Attr> plain_attrs(const NodeImport& node) {
  const PlainOp& row = *find_plain(node.op_type());
  const OpDef& op = find_op(row.op);
  std::vector<Attr> attrs;
  for (const PlainAttr& attr : row.attrs) {
    if (is_stated(node, attr, op, inputs_of(row, op)))
      attrs.push_back(read_attr(node, attr, op.find_attr(attr.ours)->kind));
  }
  return attrs;
}

std::vector<OnnxAttr> plain_attrs(NodeExport& node) {
  const PlainOp& row = *std::ranges::find(plain_ops(), node.node.op->name, &PlainOp::op);
  std::vector<OnnxAttr> attrs;
  for (const PlainAttr& attr : row.attrs) {
    const bool is_late = attr.form == Form::Late;
    if (attr.form == Form::Former || !node.has_attr(attr.ours)) continue;
    if (is_late && node.node.attrs.find(attr.ours) == nullptr) continue;
    node.need_opset(attr.since);
    add_attr(attrs, node, attr);
  }
  return attrs;
}

void import_plain(NodeImport& node) {
  const PlainOp& row = *find_plain(node.op_type());
  const OpDef& op = find_op(row.op);
  OpCall call(node, row.op);
  const std::vector<std::string_view> inputs = inputs_of(row, op);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const OperandDef& operand = op.operands[*op.operand_index(inputs[k])];
    if (operand.is_dynamic_attribute) {
      call.dynamic(inputs[k], k);
    } else if (operand.is_variadic) {
      call.operands(node.inputs());
    } else {
      call.operand(inputs[k], operand.is_optional ? node.input_or_none(k) : node.input(k));
    }
  }
  for (Attr& attr : plain_attrs(node)) call.attr(std::move(attr));
  const std::size_t wanted = std::max<std::size_t>(node.output_count(), 1);
  node.outputs(call.results(std::min(wanted, op.results.size())));
}

void write_plain(NodeExport& node) {
  const OpDef& op = *node.node.op;
  const PlainOp& row = *std::ranges::find(plain_ops(), op.name, &PlainOp::op);
  node.need_opset(std::max(row.since, opset_for_elements(node)));
  std::vector<std::string> inputs;
  for (const std::string_view name : inputs_of(row, op)) {
    const OperandDef& operand = op.operands[*op.operand_index(name)];
    if (operand.is_variadic) {
      inputs = node.operands();
    } else {
      inputs.push_back(operand.is_dynamic_attribute ? dynamic_input(node, name)
                                                    : node.operand(name));
    }
  }
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  node.emit(std::string(row.op_type), std::move(inputs), node.results(), plain_attrs(node),
            std::string(row.domain));
}

}  // namespace tenon::frontends::onnx
