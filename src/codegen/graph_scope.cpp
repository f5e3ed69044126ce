#include "codegen/graph_scope.h"

#include "base/error.h"
#include "expr/fused_groups.h"
#include "nests/nest_builder.h"
#include "nests/node_exprs.h"

#include <algorithm>
#include <unordered_set>

namespace tenon::codegen {
namespace {

void collect(const Dim& dim, std::set<std::string>& symbols) {
  SymbolRanges found;
  dim.collect_symbols(found);
  for (const auto& [name, range] : found) symbols.insert(name);
}

// Includes element types of sequences and optionals.
void collect_symbols(const Type& type, std::set<std::string>& symbols) {
  if (type.is_tensor()) {
    for (const Dim& dim : type.tensor().dims) collect(dim, symbols);
  } else if (type.is_known()) {
    collect_symbols(type.element(), symbols);
  }
}

// Collects the symbols of a node's attributes and of its operands' and results' types.
void collect_symbols(const Graph& graph, NodeId id, std::set<std::string>& symbols) {
  const Node& node = graph.node(id);
  for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
    for (ValueId value : *values) {
      if (value) collect_symbols(graph.value(value).type, symbols);
    }
  }
  for (const auto& [name, value] : node.attrs) {
    if (const auto* dim = std::get_if<Dim>(&value)) collect(*dim, symbols);
    if (const auto* dims = std::get_if<Dims>(&value)) {
      for (const Dim& dim : *dims) collect(dim, symbols);
    }
  }
  if (!is_fused_group(graph, id)) return;
  for (NodeId inner : node.bodies.front().nodes_in_order())
    collect_symbols(node.bodies.front(), inner, symbols);
}

// Returns an element type in the expressions that kernels do not support.
std::optional<DType> foreign_dtype(const std::vector<Expr>& exprs) {
  std::unordered_set<const ExprNode*> seen;
  std::vector<const ExprNode*> work;
  for (const Expr& expr : exprs) work.push_back(&expr.node());
  while (!work.empty()) {
    const ExprNode* node = work.back();
    work.pop_back();
    if (!seen.insert(node).second) continue;
    if (!nests::is_compilable(node->dtype)) return node->dtype;
    for (const Expr& arg : node->args) {
      if (arg.is_defined()) work.push_back(&arg.node());
    }
  }
  return std::nullopt;
}

}  // namespace

std::string kernel_refusal(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.bodies.empty() && !is_fused_group(graph, id)) return "control flow";
  for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
    for (ValueId value : *values) {
      if (!value) continue;
      const Type& type = graph.value(value).type;
      if (!type.is_tensor())
        return concat("'", graph.value(value).name, "' is no tensor of known rank");
      if (!nests::is_compilable(type.tensor().dtype))
        return concat("element type ", type.tensor().dtype);
    }
  }
  const std::vector<Expr> exprs = nests::node_exprs(graph, id);
  if (exprs.empty()) {
    return node.op->lower || is_fused_group(graph, id) ? "an attribute follows from data"
                                                       : "no expression describes it";
  }
  const std::optional<DType> foreign = foreign_dtype(exprs);
  return foreign ? concat("it computes with ", *foreign) : "";
}

std::string GraphScope::free_symbol(const std::string& name) const {
  const auto is_taken = [&](const std::string& other) {
    return std::ranges::find(list_.symbols, other, &TaskList::Symbol::name) != list_.symbols.end();
  };
  std::string free = name;
  for (int k = 2; is_taken(free); ++k) free = concat(name, "_", k);
  return free;
}

// Registers new symbols in the list, unbound.
void GraphScope::name(const Dim& dim) {
  SymbolRanges found;
  dim.collect_symbols(found);
  for (const auto& [symbol, range] : found) {
    if (names_.contains(symbol)) continue;
    const std::string free = free_symbol(symbol);
    list_.symbols.push_back({free, range.lo, range.hi, kNoBuffer, 0});
    names_.emplace(symbol, Dim::symbol(free, range));
  }
}

Dim GraphScope::in_list(const Dim& dim) {
  if (dim.is_constant()) return dim;
  name(dim);
  return dim.substitute(names_);
}

Dims GraphScope::in_list(const Dims& dims) {
  Dims list;
  for (const Dim& dim : dims) list.push_back(in_list(dim));
  return list;
}

bool GraphScope::is_resolved(const Dim& dim) const {
  std::set<std::string> symbols;
  collect(dim, symbols);
  return std::includes(bound_.begin(), bound_.end(), symbols.begin(), symbols.end());
}

bool GraphScope::knows_extents(NodeId node) const {
  std::set<std::string> symbols;
  collect_symbols(graph_, node, symbols);
  return std::includes(bound_.begin(), bound_.end(), symbols.begin(), symbols.end());
}

void GraphScope::alias(const std::string& symbol, const Dim& dim) {
  names_.emplace(symbol, dim);
  bound_.insert(symbol);
}

std::uint32_t GraphScope::add_buffer(const std::string& name, DType dtype, const Dims& dims,
                                     Lifetime lifetime) {
  TaskList::Buffer buffer;
  buffer.name = name;
  buffer.dtype = dtype;
  buffer.dims = in_list(dims);
  buffer.lifetime =
      lifetime == Lifetime::Value && !is_planned(buffer.dims) ? Lifetime::Sized : lifetime;
  list_.buffers.push_back(std::move(buffer));
  return static_cast<std::uint32_t>(list_.buffers.size() - 1);
}

bool GraphScope::is_planned(const Dims& dims_in_list) const {
  SymbolRanges symbols;
  for (const Dim& dim : dims_in_list) dim.collect_symbols(symbols);
  return std::ranges::all_of(symbols, [&](const auto& symbol) {
    const auto found = std::ranges::find(list_.symbols, symbol.first, &TaskList::Symbol::name);
    return found != list_.symbols.end() && found->buffer != kNoBuffer &&
           list_.buffers[found->buffer].lifetime == Lifetime::Input;
  });
}

std::uint32_t GraphScope::add_value(ValueId id, bool is_held) {
  const Value& value = graph_.value(id);
  std::uint32_t made = 0;
  if (value.type.is_tensor()) {
    const TensorType& type = value.type.tensor();
    // Host operators allocate their own results; only kernels and copies write planned buffers.
    const bool may_be_planned = !is_held && nests::is_compilable(type.dtype);
    made = add_buffer(value.name, type.dtype, type.dims,
                      may_be_planned ? Lifetime::Value : Lifetime::Sized);
    const auto port = ports.find(id);
    if (list_.buffers[made].lifetime == Lifetime::Value && port != ports.end()) {
      list_.buffers[made].lifetime = Lifetime::Output;
      list_.buffers[made].port = port->second;
    }
  } else {
    TaskList::Buffer buffer;
    buffer.name = value.name;
    buffer.opaque = value.type;
    buffer.lifetime = Lifetime::Sized;
    list_.buffers.push_back(std::move(buffer));
    made = static_cast<std::uint32_t>(list_.buffers.size() - 1);
  }
  buffers[id] = made;
  return made;
}

void GraphScope::bind(const Type& type, std::uint32_t buffer) {
  if (!type.is_tensor()) return;
  const Dims& dims = type.tensor().dims;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const auto symbol = dims[axis].symbol_name();
    if (!symbol || bound_.contains(*symbol)) continue;
    name(dims[axis]);
    const auto known =
        std::ranges::find(list_.symbols, names_.at(*symbol).symbol_name(),
                          [](const TaskList::Symbol& each) { return std::optional(each.name); });
    TENON_ASSERT(known != list_.symbols.end(), "a symbol that nobody told has a name of its own");
    known->buffer = buffer;
    known->axis = static_cast<std::uint32_t>(axis);
    bound_.insert(*symbol);
  }
}

std::uint32_t GraphScope::whole(ValueId id) {
  if (const auto known = wholes.find(id); known != wholes.end()) return known->second;
  const std::uint32_t buffer = buffers.at(id);
  const Type& type = graph_.value(id).type;
  if (list_.buffers[buffer].opaque || !type.is_tensor()) return buffer;
  Dims dims = in_list(type.tensor().dims);
  if (list_.buffers[buffer].dims == dims) return buffer;
  return add_view(buffer, graph_.value(id).name, std::move(dims));
}

std::uint32_t GraphScope::named_whole(ValueId id) {
  const std::uint32_t buffer = whole(id);
  const std::string& name = graph_.value(id).name;
  if (list_.buffers[buffer].name == name) return buffer;
  return add_view(buffer, name, list_.buffers[buffer].dims);
}

std::uint32_t GraphScope::add_view(std::uint32_t buffer, const std::string& name, Dims dims) {
  TaskList::Buffer view = list_.buffers[buffer];
  view.name = name;
  view.dims = std::move(dims);
  view.form = {};
  view.view_of = buffer;
  view.is_looked_up = false;
  list_.buffers.push_back(std::move(view));
  return static_cast<std::uint32_t>(list_.buffers.size() - 1);
}

}  // namespace tenon::codegen
