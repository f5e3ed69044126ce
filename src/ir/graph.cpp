#include "ir/graph.h"

#include "base/error.h"
#include "ir/node_rules.h"

#include <algorithm>

namespace tenon::inline ir {
namespace {

constexpr std::string_view kLeftOut = "_";

void trim_missing(std::vector<ValueId>& ids) {
  while (!ids.empty() && !ids.back()) ids.pop_back();
}

// Returns one entry per result position: a name, "" for a generated name, "_" for an omitted
// result.
std::vector<std::string> wanted_results(const OpDef& op, std::vector<std::string> names) {
  const bool any_number = !op.results.empty() && op.results.back().is_variadic;
  const std::size_t fixed = op.results.size() - (any_number ? 1 : 0);
  if (names.size() > fixed && !any_number) {
    throw Error(concat(op.name, ": too many results"))
        .expected("at most ", fixed)
        .got(names.size());
  }
  while (names.size() < fixed) {
    names.emplace_back(op.results[names.size()].is_optional ? kLeftOut : "");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const ResultDef& result = op.results[std::min(i, op.results.size() - 1)];
    if (names[i] == kLeftOut && !result.is_optional) {
      throw Error(concat(op.name, ": result '", result.name, "' cannot be left out"));
    }
  }
  return names;
}

// Renames data-dependent symbols (`?0`, …) to names that are unique in this graph.
void name_data_dims(InferOutput& inferred, const std::string& result_name,
                    const std::unordered_set<std::string>& taken) {
  SymbolRanges symbols;
  for (const Type& type : inferred.types) collect_symbols(type, symbols);
  for (const auto& known : inferred.known) {
    if (!known) continue;
    for (const Dim& dim : *known) {
      if (!dim.is_constant()) dim.collect_symbols(symbols);
    }
  }
  DimBindings names;
  for (const auto& [symbol, range] : symbols) {
    if (!symbol.starts_with('?')) continue;
    std::string name = concat(result_name, "#", symbol.substr(1));
    while (taken.contains(name)) name += "_1";
    names.emplace(symbol, Dim::symbol(std::move(name), range));
  }
  if (names.empty()) return;
  for (Type& type : inferred.types) type = substitute(type, names);
  for (auto& known : inferred.known) {
    if (known) known = substitute(*known, names);
  }
}

std::string_view first_name(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.empty() && name != kLeftOut) return name;
  }
  return {};
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(std::string graph_name) : name(std::move(graph_name)) {}
Graph::Graph(const Graph&) = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(const Graph&) = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

ValueId Graph::add_input(std::string input_name, Type type) {
  if (input_name.empty()) input_name = free_name("input");
  if (input_name == kLeftOut) throw Error("a value cannot be called '_': that stands for no value");
  const ValueId id = new_value(std::move(input_name), Type{}, NodeId{});
  inputs_.push_back(id);
  set_type(id, std::move(type));
  return id;
}

void Graph::add_output(ValueId value) {
  TENON_ASSERT(is_live(value), "an output is a value of the graph");
  outputs_.push_back(value);
  ++output_uses_[value.index()];
}

void Graph::set_outputs(std::vector<ValueId> values) {
  for (ValueId value : outputs_) --output_uses_[value.index()];
  outputs_.clear();
  for (ValueId value : values) add_output(value);
}

NodeId Graph::add_node(NewNode node, NodeId before) {
  TENON_ASSERT(node.op, "a node has an op");
  TENON_ASSERT(!before || is_live(before), "a node is inserted before one that exists");
  const OpDef& op = *node.op;
  trim_missing(node.operands);
  for (ValueId operand : node.operands) {
    TENON_ASSERT(!operand || is_live(operand), "an operand is a value of the graph");
  }
  Node made{.op = &op,
            .operands = std::move(node.operands),
            .results = {},
            .attrs = std::move(node.attrs),
            .bodies = std::move(node.bodies),
            .name = std::move(node.name)};
  InferOutput inferred;
  try {
    check_fit(op, made.operands, made.attrs, made.bodies.size());
    if (op.canonical_attributes) made.attrs = op.canonical_attributes(std::move(made.attrs));
    std::vector<std::string> names = wanted_results(op, node.results);
    inferred = infer_results(*this, op, made.operands, made.attrs, made.bodies, names.size());
    made.results = name_results(op, std::move(names));
  } catch (PlacedError& error) {
    error.locate(node_location(op, made.name.empty() ? first_name(node.results) : made.name));
    throw;
  }
  // Commit point: the graph is unchanged before this line, and no check fails after it.
  trim_missing(made.results);
  const NodeId id(nodes_.size());
  nodes_.push_back(std::move(made));
  links_.emplace_back();
  link(id, before);
  for (ValueId operand : nodes_.back().operands) {
    if (operand) add_use(operand, id);
  }
  store_inferred(id, std::move(inferred));
  return id;
}

ValueId Graph::add_constant(const OpDef& op, Constant value, std::string value_name) {
  NewNode node;
  node.op = &op;
  node.attrs.set("value", std::move(value));
  node.results.push_back(std::move(value_name));
  return nodes_[add_node(std::move(node)).index()].results.at(0);
}

ValueId Graph::new_value(std::string value_name, Type type, NodeId producer) {
  const ValueId id(values_.size());
  if (!by_name_.emplace(value_name, id).second) {
    throw Error(concat("two values are called '", value_name, "'"));
  }
  values_.push_back({std::move(value_name), std::move(type), producer});
  readers_.emplace_back();
  output_uses_.push_back(0);
  return id;
}

// Creates the values of the next node's results. Throws before any change.
std::vector<ValueId> Graph::name_results(const OpDef& op, std::vector<std::string> names) {
  std::vector<ValueId> ids(names.size());
  std::size_t next_id = values_.size();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != kLeftOut) ids[i] = ValueId(next_id++);
  }
  const auto is_given = [&](std::size_t i) { return ids[i] && !names[i].empty(); };
  // Given names first, so that a generated name does not take a given one.
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_given(i) || by_name_.emplace(names[i], ids[i]).second) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (is_given(j)) by_name_.erase(names[j]);
    }
    throw Error(concat("two values are called '", names[i], "'"));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!ids[i]) continue;
    if (names[i].empty()) by_name_.emplace(names[i] = free_name(op.name), ids[i]);
    values_.push_back({std::move(names[i]), Type{}, NodeId(nodes_.size())});
    readers_.emplace_back();
    output_uses_.push_back(0);
  }
  return ids;
}

void Graph::store_inferred(NodeId id, InferOutput inferred) {
  const std::vector<ValueId>& results = nodes_[id.index()].results;
  const auto first =
      std::find_if(results.begin(), results.end(), [](ValueId v) { return bool(v); });
  if (first == results.end()) return;
  name_data_dims(inferred, values_[first->index()].name, input_symbols_);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const ValueId result = results[i];
    if (!result) continue;
    Type& type = values_[result.index()].type;
    const bool says_more = has_stated_type(result) && depends_on_data(inferred.types[i]) &&
                           types_agree(type, inferred.types[i]);
    if (!says_more) {
      stated_.erase(result);
      type = std::move(inferred.types[i]);
    }
    known_.erase(result);
    if (inferred.known[i]) known_.emplace(result, std::move(*inferred.known[i]));
  }
}

const Node& Graph::node(NodeId id) const {
  TENON_ASSERT(is_live(id), "the node exists");
  return nodes_[id.index()];
}

const Value& Graph::value(ValueId id) const {
  TENON_ASSERT(id.index() < values_.size(), "the value exists");
  return values_[id.index()];
}

std::string Graph::location(NodeId id) const {
  const Node& found = node(id);
  if (!found.name.empty()) return node_location(*found.op, found.name);
  for (ValueId result : found.results) {
    if (result) return node_location(*found.op, value(result).name);
  }
  return node_location(*found.op, "");
}

ValueId Graph::find(std::string_view value_name) const {
  const auto found = by_name_.find(std::string(value_name));
  return found == by_name_.end() ? ValueId{} : found->second;
}

std::size_t Graph::node_id_bound() const { return nodes_.size(); }
std::size_t Graph::value_id_bound() const { return values_.size(); }

bool Graph::is_live(NodeId id) const {
  return id.index() < links_.size() && links_[id.index()].is_live;
}

bool Graph::is_live(ValueId id) const {
  if (id.index() >= values_.size()) return false;
  const NodeId producer = values_[id.index()].producer;
  return !producer || is_live(producer);
}

Graph::Order Graph::nodes_in_order() const { return Order(this); }

NodeId Graph::next(NodeId id) const {
  TENON_ASSERT(id.index() < links_.size(), "the node exists");
  return links_[id.index()].next;
}

const std::vector<NodeId>& Graph::readers(ValueId id) const {
  TENON_ASSERT(id.index() < readers_.size(), "the value exists");
  return readers_[id.index()];
}

bool Graph::is_output(ValueId id) const {
  return id.index() < output_uses_.size() && output_uses_[id.index()] != 0;
}

const Dims* Graph::known_elements(ValueId id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? nullptr : &found->second;
}

const Constant* Graph::constant_of(ValueId id) const {
  const NodeId producer = value(id).producer;
  if (!producer) return nullptr;
  const Node& made_by = node(producer);
  // op-name: the IR's own representation of a value
  if (made_by.op->name != "constant") return nullptr;
  return std::get_if<Constant>(made_by.attrs.find("value"));
}

}  // namespace tenon::inline ir
