#include "ir/constraint.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/assumptions.h"
#include "ir/kept_constraint.h"
#include "ir/lexer.h"
#include "ir/node_rules.h"

#include <algorithm>
#include <array>
#include <set>

namespace tenon::inline ir {
namespace {

constexpr std::string_view kKey = "assume ";
constexpr std::array<std::string_view, 4> kWords = {"equal", "at_most", "one_or", "broadcast"};

Truth truth_of_equality(const Dim& a, const Dim& b) {
  if (a == b) return Truth::Always;
  return provably_different(a, b) ? Truth::Never : Truth::Sometimes;
}

Truth either(Truth a, Truth b) { return std::max(a, b); }

// Symbols named `?0` stand for extents that the node's own data determines.
bool is_of_own_data(const Dim& dim) {
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(),
                     [](const auto& symbol) { return symbol.first.starts_with('?'); });
}

bool shares_symbol(const Dim& a, const Dim& b) {
  SymbolRanges in_a, in_b;
  a.collect_symbols(in_a);
  b.collect_symbols(in_b);
  return std::ranges::any_of(in_a, [&](const auto& symbol) { return in_b.contains(symbol.first); });
}

// Describes the operand and axis whose extent is `side`; returns "" if no operand has this extent.
std::string place_of(const Dim& side, const Graph& graph, const Node& node) {
  if (side.is_constant()) return "";
  const std::vector<OperandDef>& defs = node.op->operands;
  std::string related;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (!node.operands[k] || !graph.value(node.operands[k]).type.is_tensor()) continue;
    const std::size_t named = std::min(k, defs.size() - 1);
    const Dims& dims = graph.value(node.operands[k]).type.tensor().dims;
    for (std::size_t axis = 0; axis < dims.size(); ++axis) {
      const bool is_same = dims[axis] == side;
      if (!is_same && (!related.empty() || !shares_symbol(dims[axis], side))) continue;
      const std::string number = defs[named].is_variadic ? concat(" ", k - named) : "";
      const std::string place = concat("operand '", defs[named].name, "'", number, ", axis ", axis);
      if (is_same) return place;
      related = place;
    }
  }
  return related;
}

// The body of a fused group uses the same extents if its inputs have the types of the operands.
bool shares_extents(const Graph& graph, const Node& node, const Graph& body) {
  if (body.inputs().size() != node.operands.size()) return false;
  for (std::size_t k = 0; k < node.operands.size(); ++k) {
    if (!node.operands[k] ||
        !(graph.value(node.operands[k]).type == body.value(body.inputs()[k]).type))
      return false;
  }
  return true;
}

bool is_open(const Type& type) { return !type.is_tensor() || !all_constant(type.tensor().dims); }

// With constant extents, `infer` has decided every constraint.
bool has_open_extents(const Graph& graph, const Node& node) {
  for (const std::vector<ValueId>* values : {&node.operands, &node.results}) {
    for (ValueId value : *values) {
      if (value && is_open(graph.value(value).type)) return true;
    }
  }
  return false;
}

// Deduplicates with one hash lookup per constraint: graphs have thousands of nodes with equal
// constraints.
class ConstraintCollector {
 public:
  explicit ConstraintCollector(std::vector<Constraint>& to) : to_(to) {
    for (const Constraint& known : to_) seen_.insert(key_of(known));
  }
  void add(Constraint constraint) {
    if (truth_of(constraint.kind, constraint.a, constraint.b) == Truth::Always) return;
    if (seen_.insert(key_of(constraint)).second) to_.push_back(std::move(constraint));
  }

 private:
  static std::string key_of(const Constraint& constraint) {
    return concat(static_cast<int>(constraint.kind), " ", constraint.a, " ", constraint.b);
  }
  std::vector<Constraint>& to_;
  std::set<std::string> seen_;
};

void collect(const Graph& graph, ConstraintCollector& found) {
  for (NodeId id : graph.nodes_in_order()) {
    const Node& node = graph.node(id);
    if (!has_open_extents(graph, node)) continue;
    AssumptionScope assumed;
    infer_results(graph, *node.op, node.operands, node.attrs, node.bodies,
                  inferred_count(*node.op, node.results.size()));
    for (Constraint& constraint : assumed.take()) {
      if (is_of_own_data(constraint.a) || is_of_own_data(constraint.b)) continue;
      const std::string a = place_of(constraint.a, graph, node),
                        b = place_of(constraint.b, graph, node);
      constraint.op = node.op->name;
      constraint.where = graph.location(id);
      if (!a.empty()) constraint.where += concat(", ", a);
      if (!b.empty() && a != b) constraint.where += concat(a.empty() ? ", " : ", and ", b);
      found.add(std::move(constraint));
    }
    for (const Graph& body : node.bodies) {
      if (node.op->name != "fused") continue;  // op-name: the IR's own representation of a group
      if (shares_extents(graph, node, body)) collect(body, found);
    }
  }
}

ExtentRelation kind_named(Lexer& lexer) {
  const std::string word = lexer.name("what is assumed");
  const auto found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end()) {
    throw lexer.error_here(concat("'", word, "' is nothing that can be assumed"))
        .expected("equal, at_most, one_or or broadcast");
  }
  return static_cast<ExtentRelation>(found - kWords.begin());
}

Constraint read_constraint(const std::string& text, const SymbolRanges& ranges) {
  Lexer lexer(text, "a constraint in the metadata");
  Constraint constraint;
  constraint.kind = kind_named(lexer);
  lexer.expect('(', "before the extents");
  constraint.a = lexer.dim(ranges);
  lexer.expect(',', "between the extents");
  constraint.b = lexer.dim(ranges);
  lexer.expect(')', "after the extents");
  constraint.op = lexer.text("the op that asks for it");
  constraint.where = lexer.text("where it asks");
  return constraint;
}

std::string to_text(const Constraint& constraint) {
  return concat(kWords[static_cast<std::size_t>(constraint.kind)], "(", constraint.a, ", ",
                constraint.b, ") ", quote(constraint.op), " ", quote(constraint.where));
}

}  // namespace

Truth truth_of(ExtentRelation kind, const Dim& a, const Dim& b) {
  const auto is_one = [](const Dim& dim) { return truth_of_equality(dim, 1); };
  switch (kind) {
    case ExtentRelation::Equal:
      return truth_of_equality(a, b);
    case ExtentRelation::AtMost:
      if (provably_at_most(a, b)) return Truth::Always;
      return provably_at_most(b + 1, a) ? Truth::Never : Truth::Sometimes;
    case ExtentRelation::OneOr:
      return either(is_one(a), truth_of_equality(a, b));
    case ExtentRelation::Broadcast:
      return either(either(is_one(a), is_one(b)), truth_of_equality(a, b));
  }
  return Truth::Sometimes;
}

std::string rule_text(ExtentRelation kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case ExtentRelation::Equal:
      return concat(a, " == ", b);
    case ExtentRelation::AtMost:
      return concat(a, " <= ", b);
    case ExtentRelation::OneOr:
      return concat(a, " == 1 or ", a, " == ", b);
    case ExtentRelation::Broadcast:
      break;
  }
  return b.is_constant() ? concat(a, " == 1 or ", a, " == ", b)
                         : concat(a, " == ", b, ", or one of them 1");
}

std::vector<Constraint> constraints_of(const Graph& graph) {
  std::vector<Constraint> all = kept_constraints(graph);
  ConstraintCollector found(all);
  collect(graph, found);
  return all;
}

std::vector<Constraint> kept_constraints(const Graph& graph) {
  SymbolRanges ranges;
  for (ValueId input : graph.inputs()) collect_symbols(graph.value(input).type, ranges);
  std::vector<Constraint> kept;
  for (auto entry = graph.metadata.lower_bound(std::string(kKey));
       entry != graph.metadata.end() && entry->first.starts_with(kKey); ++entry) {
    kept.push_back(read_constraint(entry->second, ranges));
  }
  return kept;
}

void add_constraint(Graph& graph, const Constraint& constraint) {
  std::size_t count = 0;
  while (graph.metadata.contains(concat(kKey, count))) ++count;
  graph.metadata.emplace(concat(kKey, count), to_text(constraint));
}

void copy_constraints(const Graph& from, Graph& to) {
  for (const auto& [key, text] : from.metadata) {
    if (key.starts_with(kKey)) to.metadata.emplace(key, text);
  }
}

void keep_constraints(Graph& graph) {
  // Constraints on data-dependent extents are left out: their symbols carry the name of the
  // producing value, and passes rename values.
  SymbolRanges bound;
  for (ValueId input : graph.inputs()) collect_symbols(graph.value(input).type, bound);
  std::size_t count = 0;
  for (const Constraint& constraint : constraints_of(graph)) {
    SymbolRanges asked;
    constraint.a.collect_symbols(asked);
    constraint.b.collect_symbols(asked);
    const bool is_bound = std::ranges::all_of(
        asked, [&](const auto& symbol) { return bound.contains(symbol.first); });
    if (is_bound) graph.metadata[concat(kKey, count++)] = to_text(constraint);
  }
  for (NodeId id : graph.nodes_in_order()) {
    for (Graph& body : graph.mutable_node(id).bodies) keep_constraints(body);
  }
}

}  // namespace tenon::inline ir
