// Mutations of an existing graph, for passes.
#include "base/error.h"
#include "ir/graph.h"
#include "ir/node_rules.h"

#include <algorithm>

namespace tenon::inline ir {

void Graph::link(NodeId id, NodeId before) {
  Link& own = links_[id.index()];
  own.next = before;
  own.previous = before ? links_[before.index()].previous : last_;
  (own.previous ? links_[own.previous.index()].next : first_) = id;
  (before ? links_[before.index()].previous : last_) = id;
  ++live_nodes_;
}

// The node keeps its own `next`, so that an iterator at this node can advance.
void Graph::unlink(NodeId id) {
  Link& own = links_[id.index()];
  (own.previous ? links_[own.previous.index()].next : first_) = own.next;
  (own.next ? links_[own.next.index()].previous : last_) = own.previous;
  own.is_live = false;
  --live_nodes_;
}

void Graph::add_use(ValueId value, NodeId reader) { readers_[value.index()].push_back(reader); }

void Graph::drop_use(ValueId value, NodeId reader) {
  std::vector<NodeId>& readers = readers_[value.index()];
  const auto found = std::find(readers.begin(), readers.end(), reader);
  TENON_ASSERT(found != readers.end(), "a value knows its readers");
  readers.erase(found);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  TENON_ASSERT(is_live(from) && is_live(to), "both values exist");
  if (from == to) return;
  const NodeId maker = values_[to.index()].producer;
  std::vector<NodeId> kept;
  std::vector<NodeId>& moved = readers_[to.index()];
  NodeId last_changed;
  for (NodeId reader : std::exchange(readers_[from.index()], {})) {
    if (reader == maker) {
      kept.push_back(reader);
      continue;
    }
    moved.push_back(reader);
    if (reader == last_changed) continue;  // its other uses were replaced with it
    std::vector<ValueId>& operands = nodes_[reader.index()].operands;
    std::replace(operands.begin(), operands.end(), from, to);
    last_changed = reader;
  }
  readers_[from.index()] = std::move(kept);
  if (!is_output(from)) return;
  std::replace(outputs_.begin(), outputs_.end(), from, to);
  output_uses_[to.index()] += std::exchange(output_uses_[from.index()], 0);
}

void Graph::set_operand(NodeId id, std::size_t position, ValueId value) {
  TENON_ASSERT(is_live(id), "the node exists");
  TENON_ASSERT(!value || is_live(value), "an operand is a value of the graph");
  std::vector<ValueId>& operands = nodes_[id.index()].operands;
  if (position >= operands.size()) operands.resize(position + 1);
  if (operands[position]) drop_use(operands[position], id);
  if (value) add_use(value, id);
  operands[position] = value;
  while (!operands.empty() && !operands.back()) operands.pop_back();
}

void Graph::set_attribute(NodeId id, std::string_view attr, AttrValue value) {
  Node& changed = mutable_node(id);
  Attributes attrs = changed.attrs;
  attrs.set(attr, std::move(value));
  if (changed.op->canonical_attributes) {
    attrs = changed.op->canonical_attributes(std::move(attrs));
  }
  changed.attrs = std::move(attrs);
}

// Deletes an unlinked node's results and bodies; its uses of other values are already dropped.
void Graph::forget(NodeId id) {
  Node& gone = nodes_[id.index()];
  for (ValueId result : gone.results) {
    if (!result) continue;
    Value& value = values_[result.index()];
    by_name_.erase(value.name);
    known_.erase(result);
    stated_.erase(result);
    value.name.clear();
    value.type = Type{};
    readers_[result.index()] = {};
  }
  gone = Node{};
}

void Graph::erase(NodeId id) {
  for (ValueId result : node(id).results) {
    if (!result) continue;
    TENON_ASSERT(readers(result).empty(), "an erased node's results have no readers");
    TENON_ASSERT(!is_output(result), "an erased node's results are not outputs");
  }
  for (ValueId operand : nodes_[id.index()].operands) {
    if (operand) drop_use(operand, id);
  }
  unlink(id);
  forget(id);
}

std::size_t Graph::erase_dead() {
  std::vector<bool> is_needed(values_.size(), false);
  for (ValueId output : outputs_) is_needed[output.index()] = true;
  std::vector<NodeId> dead;
  for (NodeId id = last_; id; id = links_[id.index()].previous) {
    const Node& node = nodes_[id.index()];
    const bool is_read = std::any_of(node.results.begin(), node.results.end(), [&](ValueId result) {
      return result && is_needed[result.index()];
    });
    if (!is_read) {
      dead.push_back(id);
      continue;
    }
    for (ValueId operand : node.operands) {
      if (operand) is_needed[operand.index()] = true;
    }
  }
  // Filters each value's readers once, however many of them are removed.
  std::vector<ValueId> touched;
  std::vector<bool> is_touched(values_.size(), false);
  for (NodeId id : dead) {
    unlink(id);
    for (ValueId operand : nodes_[id.index()].operands) {
      if (!operand || is_touched[operand.index()]) continue;
      is_touched[operand.index()] = true;
      touched.push_back(operand);
    }
  }
  for (ValueId value : touched) {
    std::erase_if(readers_[value.index()], [&](NodeId reader) { return !is_live(reader); });
  }
  for (NodeId id : dead) forget(id);
  return dead.size();
}

void Graph::rename(ValueId id, std::string new_name) {
  TENON_ASSERT(is_live(id), "the value exists");
  Value& renamed = values_[id.index()];
  if (renamed.name == new_name) return;
  if (new_name.empty() || new_name == "_") throw Error("a value's name cannot be empty or '_'");
  if (!by_name_.emplace(new_name, id).second) {
    throw Error(concat("two values would be called '", new_name, "'"));
  }
  by_name_.erase(renamed.name);
  renamed.name = std::move(new_name);
}

void Graph::swap_names(ValueId a, ValueId b) {
  TENON_ASSERT(is_live(a) && is_live(b), "both values exist");
  std::string& name_of_a = values_[a.index()].name;
  std::string& name_of_b = values_[b.index()].name;
  name_of_a.swap(name_of_b);
  by_name_[name_of_a] = a;
  by_name_[name_of_b] = b;
}

std::string Graph::free_name(std::string_view base) const {
  std::string found(base);
  if (!by_name_.contains(found)) return found;
  std::uint32_t& suffix = next_suffix_[found];
  do {
    found.resize(base.size());
    found += '_';
    found += std::to_string(++suffix);
  } while (by_name_.contains(found));
  return found;
}

void Graph::set_type(ValueId id, Type type) {
  TENON_ASSERT(is_live(id), "the value exists");
  Value& changed = values_[id.index()];
  if (changed.producer) {
    if (!(changed.type == type)) stated_.insert(id);
  } else {
    SymbolRanges symbols;
    collect_symbols(type, symbols);
    for (const auto& [symbol, range] : symbols) {
      if (symbol.find('#') != std::string::npos) input_symbols_.insert(symbol);
    }
  }
  changed.type = std::move(type);
}

void Graph::infer(NodeId id) {
  const Node& changed = node(id);
  try {
    store_inferred(
        id, infer_results(*this, *changed.op, changed.operands, changed.attrs, changed.bodies,
                          inferred_count(*changed.op, changed.results.size())));
  } catch (PlacedError& error) {
    error.locate(location(id));
    throw;
  }
}

Node& Graph::mutable_node(NodeId id) {
  TENON_ASSERT(is_live(id), "the node exists");
  return nodes_[id.index()];
}

namespace {

std::string_view source_name(const Graph& graph, const Node& node) {
  if (!node.name.empty() || node.results.empty() || !node.results[0]) return node.name;
  return graph.value(node.results[0]).name;
}

/// Compares two graphs in lockstep; ids may differ, names may not.
class GraphComparison {
 public:
  GraphComparison(const Graph& a, const Graph& b)
      : a_(a), b_(b), counterpart_(a.value_id_bound()) {}

  bool is_same() {
    if (a_.name != b_.name || a_.metadata != b_.metadata) return false;
    if (a_.node_count() != b_.node_count()) return false;
    if (!all_pairs(a_.inputs(), b_.inputs(), [&](ValueId x, ValueId y) { return is_made(x, y); })) {
      return false;
    }
    NodeId y = b_.first();
    for (NodeId x : a_.nodes_in_order()) {
      if (!is_same_node(a_.node(x), b_.node(y))) return false;
      y = b_.next(y);
    }
    return all_pairs(a_.outputs(), b_.outputs(),
                     [&](ValueId v, ValueId w) { return is_read(v, w); }) &&
           std::ranges::equal(a_.states, b_.states, is_same_state);
  }

 private:
  template <class Test>
  static bool all_pairs(const std::vector<ValueId>& x, const std::vector<ValueId>& y, Test test) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), test);
  }

  bool is_made(ValueId x, ValueId y) {
    if (!x || !y) return x == y;
    counterpart_[x] = y;
    return a_.value(x).name == b_.value(y).name && a_.value(x).type == b_.value(y).type;
  }

  bool is_read(ValueId x, ValueId y) const { return !x || !y ? x == y : counterpart_[x] == y; }

  static bool is_same_state(const Graph::State& x, const Graph::State& y) {
    return x.input == y.input && x.output == y.output &&
           x.initial.has_value() == y.initial.has_value() &&
           (!x.initial || identical(*x.initial, *y.initial)) &&
           x.starts_with_zeros == y.starts_with_zeros && x.may_overwrite == y.may_overwrite;
  }

  bool is_same_node(const Node& x, const Node& y) {
    return x.op->name == y.op->name && source_name(a_, x) == source_name(b_, y) &&
           x.attrs == y.attrs &&
           all_pairs(x.operands, y.operands, [&](ValueId v, ValueId w) { return is_read(v, w); }) &&
           all_pairs(x.results, y.results, [&](ValueId v, ValueId w) { return is_made(v, w); }) &&
           std::equal(x.bodies.begin(), x.bodies.end(), y.bodies.begin(), y.bodies.end(),
                      [](const Graph& v, const Graph& w) { return identical(v, w); });
  }

  const Graph& a_;
  const Graph& b_;
  IdMap<ValueId, ValueId> counterpart_;
};

}  // namespace

bool identical(const Graph& a, const Graph& b) { return GraphComparison(a, b).is_same(); }

}  // namespace tenon::inline ir
