#include "ir/verify.h"

#include "base/error.h"
#include "ir/node_rules.h"

#include <algorithm>

namespace tenon::inline ir {
namespace {

constexpr std::size_t kMostProblems = 20;

class GraphVerifier {
 public:
  GraphVerifier(const Graph& graph, SymbolRanges& symbols, std::string place,
                std::vector<std::string>& problems)
      : graph_(graph),
        symbols_(symbols),
        place_(std::move(place)),
        problems_(problems),
        is_made_(graph.value_id_bound(), false),
        use_count_(graph.value_id_bound(), 0) {}

  void run() {
    for (ValueId input : graph_.inputs()) {
      if (!is_id(input)) {
        report("an input is no value of the graph");
      } else if (graph_.value(input).producer) {
        report("input ", quoted(input), " is made by a node");
      } else {
        check_made(input);
      }
    }
    std::size_t count = 0;
    for (NodeId id : graph_.nodes_in_order()) {
      check_node(id);
      ++count;
    }
    if (count != graph_.node_count())
      report("the order holds ", count, " nodes of ", graph_.node_count());
    for (ValueId output : graph_.outputs()) {
      if (!is_id(output) || !is_made_[output.index()]) report("an output is never made");
    }
    if (problems_.empty()) check_states();
    check_readers();
  }

 private:
  template <class... Parts>
  void report(const Parts&... parts) {
    problems_.push_back(concat(place_, parts...));
  }

  std::string quoted(ValueId id) const { return concat("'", graph_.value(id).name, "'"); }
  bool is_id(ValueId id) const { return id.index() < is_made_.size(); }

  // Checks a definition: each value is defined once, under a unique name, with consistent symbol
  // ranges.
  void check_made(ValueId id) {
    const Value& value = graph_.value(id);
    if (is_made_[id.index()]) report("value ", quoted(id), " is made twice");
    is_made_[id.index()] = true;
    if (value.name.empty()) {
      report("a value has no name");
    } else if (graph_.find(value.name) != id) {
      report("value ", quoted(id), " is not found under its name");
    }
    SymbolRanges symbols;
    collect_symbols(value.type, symbols);
    for (const auto& [name, range] : symbols) {
      const auto [known, is_new] = symbols_.emplace(name, range);
      if (is_new || known->second == range) continue;
      report("symbol '", name, "' has two ranges, one of them in the type of ", quoted(id));
    }
  }

  template <class... Parts>
  void report_node(NodeId id, const Parts&... parts) {
    report(location(id), ": ", parts...);
  }

  // Like `Graph::location`, for a node that may be broken.
  std::string location(NodeId id) const {
    const Node& node = graph_.node(id);
    const bool is_sound = std::all_of(node.results.begin(), node.results.end(),
                                      [&](ValueId result) { return !result || is_id(result); });
    return is_sound ? graph_.location(id) : node_location(*node.op, node.name);
  }

  void check_node(NodeId id) {
    const bool reads_well = check_operands(id);
    const bool makes_well = check_results(id);
    if (reads_well && makes_well) check_against_op(id);
    const std::vector<Graph>& bodies = graph_.node(id).bodies;
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const std::string inside = concat(place_, location(id), ", body ", i + 1, ": ");
      GraphVerifier(bodies[i], symbols_, inside, problems_).run();
    }
  }

  bool check_operands(NodeId id) {
    bool is_good = true;
    for (ValueId operand : graph_.node(id).operands) {
      if (!operand) continue;
      if (!is_id(operand)) {
        report_node(id, "an operand is no value of the graph");
        is_good = false;
        continue;
      }
      ++use_count_[operand.index()];
      if (is_made_[operand.index()]) continue;
      report_node(id, "value ", quoted(operand), " is read before it is made");
      is_good = false;
    }
    return is_good;
  }

  bool check_results(NodeId id) {
    const Node& node = graph_.node(id);
    const std::vector<ResultDef>& defs = node.op->results;
    if (node.results.size() > defs.size() && (defs.empty() || !defs.back().is_variadic)) {
      report_node(id, "too many results");
      return false;
    }
    bool is_good = true;
    for (std::size_t i = 0; i < std::max(node.results.size(), defs.size()); ++i) {
      const ResultDef& def = defs[std::min(i, defs.size() - 1)];
      const bool is_listed = i < node.results.size();
      const ValueId result = is_listed ? node.results[i] : ValueId{};
      if (!result) {
        if (def.is_optional || (def.is_variadic && !is_listed)) continue;
        report_node(id, "result '", def.name, "' is missing");
        is_good = false;
      } else if (!is_id(result)) {
        report_node(id, "a result is no value of the graph");
        is_good = false;
      } else {
        if (graph_.value(result).producer != id) {
          report_node(id, "value ", quoted(result), " does not know its node");
        }
        check_made(result);
      }
    }
    return is_good;
  }

  void check_against_op(NodeId id) {
    const Node& node = graph_.node(id);
    const OpDef& op = *node.op;
    try {
      check_fit(op, node.operands, node.attrs, node.bodies.size());
      if (op.canonical_attributes && !(op.canonical_attributes(node.attrs) == node.attrs)) {
        report_node(id, "attributes are not canonical");
      }
      if (op.infer) check_types(id, node);
    } catch (const Error& error) {
      report_node(id, error.what());
    }
  }

  void check_types(NodeId id, const Node& node) {
    const InferOutput inferred =
        infer_results(graph_, *node.op, node.operands, node.attrs, node.bodies,
                      inferred_count(*node.op, node.results.size()));
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (!node.results[i]) continue;
      const Type& type = graph_.value(node.results[i]).type;
      if (types_agree(type, inferred.types[i])) continue;
      report_node(id, "value ", quoted(node.results[i]), " is ", type, " but its node gives ",
                  inferred.types[i]);
    }
  }

  // The caller holds a state between runs: only tensors, whose extents may change if symbolic.
  static bool may_become(const Type& next, const Type& now) {
    if (!next.is_tensor() || !now.is_tensor()) return false;
    const TensorType &from = next.tensor(), &to = now.tensor();
    return from.dtype == to.dtype &&
           std::ranges::equal(from.dims, to.dims, [](const Dim& a, const Dim& b) {
             return !a.is_constant() || !b.is_constant() || a == b;
           });
  }

  void check_states() {
    std::vector<bool> is_read(graph_.inputs().size(), false);
    std::vector<bool> is_written(graph_.outputs().size(), false);
    for (const Graph::State& state : graph_.states) {
      if (state.input >= is_read.size() || state.output >= is_written.size()) {
        report("a state is no input and output of the graph");
        continue;
      }
      const ValueId now = graph_.inputs()[state.input], next = graph_.outputs()[state.output];
      if (is_read[state.input] || is_written[state.output])
        report("state ", quoted(now), " shares its input or output with another state");
      is_read[state.input] = is_written[state.output] = true;
      const Type& type = graph_.value(now).type;
      if (!may_become(graph_.value(next).type, type))
        report("state ", quoted(now), " is ", type, " and its next value ",
               graph_.value(next).type);
      if (state.initial && !may_become(state.initial->type(), type))
        report("state ", quoted(now), " is ", type, " and its initial value ",
               Type(state.initial->type()));
    }
  }

  void check_readers() {
    // All uses, grouped by value: a counting sort of (value, reader).
    std::vector<std::size_t> end(use_count_.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < end.size(); ++i)
      end[i] = std::exchange(total, total + use_count_[i]);
    std::vector<NodeId> uses(total);
    for (NodeId id : graph_.nodes_in_order()) {
      for (ValueId operand : graph_.node(id).operands) {
        if (operand && is_id(operand)) uses[end[operand.index()]++] = id;
      }
    }
    for (std::size_t i = 0; i < end.size(); ++i) {
      const ValueId id(i);
      std::vector<NodeId> expected(
          uses.begin() + static_cast<std::ptrdiff_t>(end[i] - use_count_[i]),
          uses.begin() + static_cast<std::ptrdiff_t>(end[i]));
      if (expected == graph_.readers(id)) continue;
      std::vector<NodeId> known = graph_.readers(id);
      std::sort(known.begin(), known.end());
      std::sort(expected.begin(), expected.end());
      if (known != expected) report("value ", quoted(id), " does not know its readers");
    }
  }

  const Graph& graph_;
  SymbolRanges& symbols_;
  std::string place_;
  std::vector<std::string>& problems_;
  std::vector<bool> is_made_;
  std::vector<std::uint32_t> use_count_;
};

}  // namespace

std::vector<std::string> problems_of(const Graph& graph) {
  std::vector<std::string> problems;
  SymbolRanges symbols;
  GraphVerifier(graph, symbols, "", problems).run();
  return problems;
}

void verify(const Graph& graph) {
  const std::vector<std::string> problems = problems_of(graph);
  if (problems.empty()) return;
  std::string text = concat("the graph is not sound: ", problems.size(),
                            problems.size() == 1 ? " problem" : " problems");
  for (std::size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i) {
    text += concat("\n  - ", problems[i]);
  }
  if (problems.size() > kMostProblems)
    text += concat("\n  - … ", problems.size() - kMostProblems, " more");
  Error error(std::move(text));
  if (!graph.name.empty()) error.at("graph '", graph.name, "'");
  throw error;
}

}  // namespace tenon::inline ir
