#include "documents/native_node.h"

#include "base/error.h"
#include "ir/text.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <unordered_map>

namespace tenon::documents {
namespace {

constexpr std::int64_t kMostInlineElements = 256;

bool is_constant_node(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return !node.results.empty() && node.results[0] && graph.constant_of(node.results[0]) != nullptr;
}

// Binds symbols of the record to the operands' extents: a format may have renamed the symbols.
void bind_symbols(const Type& said, const Type& given, DimBindings& bindings) {
  if (!said.is_tensor() || !given.is_tensor()) return;
  const Dims &p = said.tensor().dims, &q = given.tensor().dims;
  for (std::size_t k = 0; k < std::min(p.size(), q.size()); ++k) {
    const auto name = p[k].symbol_name();
    if (name && !(p[k] == q[k])) bindings.try_emplace(*name, q[k]);
  }
}

AttrValue bound(const AttrValue& value, const DimBindings& bindings) {
  if (const auto* dim = std::get_if<Dim>(&value)) return dim->substitute(bindings);
  if (const auto* dims = std::get_if<Dims>(&value)) return substitute(*dims, bindings);
  if (const auto* type = std::get_if<Type>(&value)) return substitute(*type, bindings);
  return value;
}

// A format without layouts takes them from the readers of its inputs.
void state_layout(Graph& graph, ValueId value, const Type& said) {
  const Value& given = graph.value(value);
  if (!said.is_tensor() || !given.type.is_tensor() || !given.type.tensor().layout.is_empty())
    return;
  if (given.producer && graph.constant_of(value) == nullptr) return;
  Type stated = given.type;
  stated.tensor().layout = said.tensor().layout;
  if (stated == said && !said.tensor().layout.is_empty()) graph.set_type(value, std::move(stated));
}

void copy_type(const Graph& from, ValueId value, Graph& to, ValueId copy) {
  if (from.has_stated_type(value)) to.set_type(copy, from.value(value).type);
}

}  // namespace

// Line breaks in the text form occur only between nodes: strings are quoted.
std::string one_line(const Graph& graph) {
  const std::string text = print(graph);
  std::string line;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '\n') {
      line += text[k];
      continue;
    }
    while (k + 1 < text.size() && text[k + 1] == ' ') ++k;
    if (k + 1 < text.size()) line += ' ';
  }
  return line;
}

bool fits_text(const Graph& graph, ValueId value) {
  const Constant* constant = value ? graph.constant_of(value) : nullptr;
  if (constant == nullptr) return false;
  const bool is_short =
      constant->base().kind() != Constant::Kind::Dense || constant->size() <= kMostInlineElements;
  return is_short && (constant->shape().empty() || !is_float(constant->dtype()));
}

NativeNode native_node(const Graph& graph, NodeId id,
                       const std::function<std::string(ValueId)>& name_of) {
  const Node& node = graph.node(id);
  NativeNode own;
  Graph alone;
  std::unordered_map<ValueId, ValueId> copies;
  for (const ValueId operand : node.operands) {
    if (!operand || copies.contains(operand) || fits_text(graph, operand)) continue;
    const std::string wanted = name_of ? name_of(operand) : concat("x", own.inputs.size());
    copies[operand] = alone.add_input(alone.free_name(wanted), graph.value(operand).type);
    own.inputs.push_back(operand);
  }
  for (const ValueId operand : node.operands) {
    if (!operand || copies.contains(operand)) continue;
    const std::string name = alone.free_name("c");
    copies[operand] = alone.add_constant(find_op("constant"), *graph.constant_of(operand), name);
    copy_type(graph, operand, alone, copies[operand]);
  }
  Graph::NewNode made;
  made.op = node.op;
  made.attrs = node.attrs;
  made.bodies = node.bodies;
  for (const ValueId operand : node.operands)
    made.operands.push_back(operand ? copies.at(operand) : ValueId());
  for (const ValueId result : node.results) {
    const std::string name = concat("y", made.results.size());
    made.results.push_back(result ? alone.free_name(name) : "_");
  }
  const NodeId copy = alone.add_node(std::move(made));
  for (std::size_t k = 0; k < node.results.size(); ++k) {
    if (!node.results[k]) continue;
    const ValueId result = alone.node(copy).results[k];
    copy_type(graph, node.results[k], alone, result);
    alone.add_output(result);
    own.outputs.push_back(node.results[k]);
  }
  own.text = one_line(alone);
  return own;
}

NodeId node_of_native(const Graph& record) {
  NodeId found;
  for (const NodeId id : record.nodes_in_order()) {
    if (is_constant_node(record, id)) continue;
    if (found) throw Error("the record of an operator of Tenon's holds several nodes");
    found = id;
  }
  if (!found) throw Error("the record of an operator of Tenon's holds no node");
  return found;
}

Graph parse_native(std::string_view text) {
  Graph record = parse_graph(text, all_ops(), "record");
  const Node& node = record.node(node_of_native(record));
  for (const ValueId output : record.outputs()) {
    if (std::find(node.results.begin(), node.results.end(), output) == node.results.end())
      throw Error("the record of an operator of Tenon's gives what its node does not make");
  }
  return record;
}

std::vector<Var> build_native(const Graph& record, Builder& build, std::span<const Var> inputs) {
  if (inputs.size() != record.inputs().size()) {
    throw Error("the record of an operator of Tenon's reads another number of values")
        .expected(record.inputs().size())
        .got(inputs.size());
  }
  std::unordered_map<ValueId, Var> values;
  DimBindings bindings;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    bind_symbols(record.value(record.inputs()[k]).type, build.type(inputs[k]), bindings);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const Type said = substitute(record.value(record.inputs()[k]).type, bindings);
    state_layout(build.graph(), ValueId(inputs[k].id()), said);
    if (build.type(inputs[k]) != said) {
      throw Error(concat("the record of '", record.op_name(node_of_native(record)),
                         "' reads a value of another type"))
          .expected(to_string(said))
          .got(to_string(build.type(inputs[k])));
    }
    values[record.inputs()[k]] = inputs[k];
  }
  const auto state_type = [&](ValueId value, Var made) {
    if (record.has_stated_type(value))
      build.graph().set_type(ValueId(made.id()), substitute(record.value(value).type, bindings));
  };
  for (const NodeId id : record.nodes_in_order()) {
    const Node& node = record.node(id);
    if (is_constant_node(record, id)) {
      values[node.results[0]] = build.constant(*record.constant_of(node.results[0]));
      state_type(node.results[0], values[node.results[0]]);
      continue;
    }
    std::vector<Var> operands;
    for (const ValueId operand : node.operands)
      operands.push_back(operand ? values.at(operand) : Var());
    std::vector<std::string> names;
    for (const ValueId result : node.results) names.emplace_back(result ? "" : "_");
    Attributes attrs;
    for (const auto& [name, value] : node.attrs) attrs.set(name, bound(value, bindings));
    const std::vector<Var> made =
        build.call_all(node.op->name, operands, std::move(attrs), std::move(names), node.bodies);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (!node.results[k]) continue;
      values[node.results[k]] = made[k];
      state_type(node.results[k], made[k]);
    }
  }
  std::vector<Var> outputs;
  for (const ValueId output : record.outputs()) outputs.push_back(values.at(output));
  return outputs;
}

std::string camel_case(std::string_view op) {
  std::string name;
  bool is_start = true;
  for (const char c : op) {
    if (c == '_') {
      is_start = true;
    } else {
      name += is_start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
      is_start = false;
    }
  }
  return name;
}

}  // namespace tenon::documents
