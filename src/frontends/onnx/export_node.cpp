#include "frontends/onnx/export_node.h"

#include "base/error.h"
#include "frontends/node_attrs.h"
#include "frontends/onnx/exporter.h"

namespace tenon::frontends::onnx {
namespace {

[[noreturn]] void throw_run_time(std::string_view attr) {
  throw Error(concat("'", attr, "' is only known at run time"), ErrorKind::Unsupported);
}

}  // namespace

NodeExport::NodeExport(OnnxExporter& exporter, const Graph& in_graph, NodeId id)
    : graph(in_graph), node(in_graph.node(id)), exporter_(exporter) {}

int NodeExport::opset() const { return exporter_.opset(); }
void NodeExport::need_opset(int version) { exporter_.need_opset(version); }

bool NodeExport::has(std::string_view operand_name) const {
  const std::optional<std::size_t> position = node.op->operand_index(operand_name);
  TENON_ASSERT(position, concat(node.op->name, " has an operand '", operand_name, "'"));
  return *position < node.operands.size() && node.operands[*position];
}

std::string NodeExport::operand(std::string_view name) const {
  if (!has(name)) return "";
  return exporter_.frame().names[node.operands[*node.op->operand_index(name)].index()];
}

std::vector<std::string> NodeExport::operands() const {
  std::vector<std::string> names;
  for (ValueId id : node.operands) names.push_back(id ? exporter_.frame().names[id.index()] : "");
  return names;
}

const Type& NodeExport::operand_type(std::string_view name) const {
  TENON_ASSERT(has(name), concat(node.op->name, " is given '", name, "'"));
  return graph.value(node.operands[*node.op->operand_index(name)]).type;
}

const Type& NodeExport::result_type(std::size_t position) const {
  TENON_ASSERT(position < node.results.size() && node.results[position], "the result is wanted");
  return graph.value(node.results[position]).type;
}

std::string NodeExport::result(std::size_t position) const {
  if (position >= node.results.size() || !node.results[position]) return "";
  return exporter_.frame().names[node.results[position].index()];
}

std::vector<std::string> NodeExport::results() const {
  std::vector<std::string> names;
  for (std::size_t k = 0; k < node.results.size(); ++k) names.push_back(result(k));
  return names;
}

bool NodeExport::has_attr(std::string_view name) const { return attr_of(node, name) != nullptr; }

const AttrValue& NodeExport::attr(std::string_view name) const {
  const AttrDef* def = node.op->find_attr(name);
  TENON_ASSERT(def, concat(node.op->name, " has an attribute '", name, "'"));
  if (const AttrValue* value = node.attrs.find(name)) return *value;
  const std::optional<std::size_t> dynamic = node.op->operand_index(name);
  if (dynamic && node.op->operands[*dynamic].is_dynamic_attribute && has(name))
    throw_run_time(name);
  if (!def->default_value) {
    throw Error(concat("'", name, "' is not given"), ErrorKind::Unsupported);
  }
  return *def->default_value;
}

std::int64_t NodeExport::integer(std::string_view name) const {
  const Dim& value = std::get<Dim>(attr(name));
  if (!value.is_constant()) {
    throw Error(concat("'", name, "' depends on extents"), ErrorKind::Unsupported);
  }
  return value.constant();
}

bool NodeExport::flag(std::string_view name) const { return std::get<bool>(attr(name)); }
double NodeExport::real(std::string_view name) const { return std::get<double>(attr(name)); }
std::string NodeExport::text(std::string_view name) const {
  return std::get<std::string>(attr(name));
}
DType NodeExport::element(std::string_view name) const { return std::get<DType>(attr(name)); }

std::vector<std::int64_t> NodeExport::integers(std::string_view name) const {
  const Dims& values = std::get<Dims>(attr(name));
  if (!all_constant(values)) {
    throw Error(concat("'", name, "' depends on extents"), ErrorKind::Unsupported);
  }
  return constants(values);
}

std::vector<double> NodeExport::reals(std::string_view name) const {
  return std::get<std::vector<double>>(attr(name));
}
std::vector<std::string> NodeExport::texts(std::string_view name) const {
  return std::get<std::vector<std::string>>(attr(name));
}

std::string NodeExport::integers_input(std::string_view name) {
  if (node.op->operand_index(name) && has(name)) return operand(name);
  const Dims& values = std::get<Dims>(attr(name));
  if (all_constant(values)) return constant(Tensor::of_integers(constants(values)), name);
  std::vector<std::string> parts;
  for (const Dim& value : values) parts.push_back(exporter_.extent_value(value));
  if (parts.size() == 1) return parts.front();
  return emit_value("Concat", parts, {{"axis", std::int64_t{0}}});
}

std::string NodeExport::integer_input(std::string_view name, bool as_list) {
  if (!has(name)) {
    return constant(
        Tensor::of<std::int64_t>(DType::I64, as_list ? Shape{1} : Shape{}, {integer(name)}), name);
  }
  const Type& type = operand_type(name);
  const bool is_list = type.is_tensor() && type.tensor().rank() == 1;
  if (type.is_tensor() && is_list == as_list) return operand(name);
  const std::string shape =
      integers_constant(as_list ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{});
  return emit_value("Reshape", {operand(name), shape});
}

std::string NodeExport::reals_input(std::string_view name) {
  if (node.op->operand_index(name) && has(name)) return operand(name);
  const std::vector<double> values = reals(name);
  if (values.empty()) return "";
  return constant(Tensor::of(DType::F32, {static_cast<std::int64_t>(values.size())}, values), name);
}

std::string NodeExport::constant(const Tensor& value, std::string_view hint) {
  return exporter_.add_constant(value, hint);
}

std::string NodeExport::fresh(std::string_view hint) { return exporter_.fresh(hint); }

void NodeExport::emit(std::string op_type, std::vector<std::string> inputs,
                      std::vector<std::string> outputs, std::vector<OnnxAttr> attrs,
                      std::string domain) {
  exporter_.add_node(op_type, inputs, outputs, attrs, domain);
}

std::string NodeExport::emit_value(std::string op_type, std::vector<std::string> inputs,
                                   std::vector<OnnxAttr> attrs) {
  const std::string base = result().empty() ? node.op->name : result();
  std::string name = exporter_.fresh(concat(base, "_", op_type));
  emit(std::move(op_type), std::move(inputs), {name}, std::move(attrs));
  return name;
}

}  // namespace tenon::frontends::onnx
