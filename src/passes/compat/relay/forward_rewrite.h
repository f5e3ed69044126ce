#pragma once

#include "ir/graph.h"

#include <any>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::passes {

class ForwardRewriter;
using TemporaryId = Id<struct TemporaryTag>;

/// A value that exists only during the rewrite: a value of the new graph and a note of the pass
/// about it ("inside an 8-bit section", "an integer at this scale").
struct Temporary {
  ValueId value;
  std::any note;
};

/// Replacement of a value of the old graph: a value of the new graph or a temporary. Temporaries
/// have identity: two temporaries of the same value differ.
struct Rewritten {
  ValueId value;
  TemporaryId temporary;

  bool is_temporary() const { return temporary.is_valid(); }
  bool operator==(const Rewritten&) const = default;
};

/// A node of the old graph with its rewritten operands, including temporaries, as rules see it. An
/// omitted operand is neither a value nor a temporary.
struct RewrittenNode {
  const Graph& graph;
  NodeId id;
  std::span<const Rewritten> operands;
  /// result of `ForwardRules::context` for the node
  const std::any& context;
};

struct ForwardRules {
  /// Rewrites a node of one op. Returns a value or temporary for each result; nullopt has the same
  /// effect as a missing rule.
  using Rule =
      std::function<std::optional<std::vector<Rewritten>>(ForwardRewriter&, const RewrittenNode&)>;
  std::map<std::string, Rule, std::less<>> by_op;
  /// Builds the value of the new graph that a temporary stands for. Every call builds new nodes.
  std::function<ValueId(ForwardRewriter&, const Temporary&)> realize;

  /// Optional: computes additional information about each node for the rules.
  std::function<std::any(const Graph&, NodeId)> context;
  /// Optional: replaces an operand that has several readers in the old graph, before a rule or a
  /// plain copy sees it.
  std::function<Rewritten(ForwardRewriter&, Rewritten)> on_several_readers;
  /// Optional: returns the constant that replaces an input, or nullopt.
  std::function<std::optional<Constant>(const Graph&, ValueId)> bind_input;
  /// Realizes outputs that are temporaries; false returns their bare values.
  bool realize_outputs = true;
};

/// Forward rewriter: rewrites a graph from its inputs to its outputs, one node at a time, in the
/// order in which the outputs need the nodes (operands from left to right). Builds a new graph, in
/// which
///
/// - a node without a rule, or whose rule returns nullopt, reads the realizations of its operands'
///   temporaries. All such nodes and the outputs share one realization per temporary.
/// - a rule receives temporaries as they are. It calls `realize` for a value, which builds new
///   nodes each time, or `realize_shared`, which builds them once.
/// - unchanged nodes keep their names, and new nodes take the names of those they replace. Nodes
///   that no output needs are dropped.
class ForwardRewriter {
 public:
  ForwardRewriter(const Graph& graph, const ForwardRules& rules);
  Graph run();

  /// For rules.
  const Temporary& temporary(TemporaryId id) const { return temporaries_[id.index()]; }
  Rewritten make_temporary(ValueId value, std::any note = {});
  /// Returns the value, realized anew if it is a temporary.
  ValueId realize(Rewritten item);
  ValueId realize_shared(Rewritten item);
  /// Copies a node of the old graph onto other operands: its op, attributes, bodies, name and the
  /// names of its results.
  std::vector<ValueId> forward(NodeId original, const std::vector<ValueId>& operands);
  ValueId constant(Constant value, std::string_view name = "");
  /// Adds a node that has no source node; its result is named after `name`.
  ValueId call(std::string_view op, const std::vector<ValueId>& operands, Attributes attrs = {},
               std::string_view name = "");
  Graph& graph() { return result_; }

 private:
  void visit(ValueId root);
  void name_output(const std::string& name, ValueId value);
  void rewrite(NodeId id);
  void copy_plainly(NodeId id, const std::vector<Rewritten>& operands);
  Rewritten operand_of(ValueId value);

  const Graph& source_;
  const ForwardRules& rules_;
  Graph result_;
  std::vector<Temporary> temporaries_;
  std::unordered_map<ValueId, Rewritten> rewritten_;       // by value of the old graph
  std::unordered_map<TemporaryId, ValueId> realizations_;  // shared realizations
};

}  // namespace tenon::passes
