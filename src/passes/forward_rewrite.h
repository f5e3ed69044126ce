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

namespace tenon {

class ForwardRewriter;
using TemporaryId = Id<struct TemporaryTag>;

/// A value that only exists while a graph is rewritten: one of the new graph and what a pass notes
/// about it ("inside an 8-bit section", "an integer at this scale").
struct Temporary {
  ValueId value;
  std::any note;
};

/// What a value of the old graph has become: a value of the new one, or a temporary. Temporaries
/// have identity: two made from the same value are two.
struct Rewritten {
  ValueId value;
  TemporaryId temporary;

  bool is_temporary() const { return temporary.is_valid(); }
  bool operator==(const Rewritten&) const = default;
};

/// One node as a rule sees it: the node of the old graph, and its operands rewritten, temporaries
/// and all. An operand that is left out is neither value nor temporary.
struct RewrittenNode {
  const Graph& graph;
  NodeId id;
  std::span<const Rewritten> operands;
  /// what `ForwardRules::context` gave for the node
  const std::any& context;
};

struct ForwardRules {
  /// What a node of an op becomes: a value or temporary for each result, or nothing, which is the
  /// same as having no rule.
  using Rule =
      std::function<std::optional<std::vector<Rewritten>>(ForwardRewriter&, const RewrittenNode&)>;
  std::map<std::string, Rule, std::less<>> by_op;
  /// The value of the new graph that a temporary stands for; made anew at each call.
  std::function<ValueId(ForwardRewriter&, const Temporary&)> realize;

  /// Optional: what a rule is told about each node besides.
  std::function<std::any(const Graph&, NodeId)> context;
  /// Optional: what becomes of an operand that the old graph reads more than once, before a rule or
  /// a plain copy sees it.
  std::function<Rewritten(ForwardRewriter&, Rewritten)> on_several_readers;
  /// Optional: the constant that takes the place of an input, or nothing.
  std::function<std::optional<Constant>(const Graph&, ValueId)> bind_input;
  /// Outputs that are temporaries are realized; false leaves their bare values.
  bool realize_outputs = true;
};

/// Rewrites a graph from its inputs to its outputs, one node at a time, in the order in which its
/// outputs need them (operands left to right). Makes a new graph, in which
///
/// - a node without a rule, or whose rule gives nothing, reads the realizations of its operands'
///   temporaries. The same temporary is realized once for all such nodes and for the outputs.
/// - a rule gets temporaries as they are. One that wants a value calls `realize`, which makes new
///   nodes each time; `realize_shared` makes them once.
/// - nodes that nothing asked to change are copied with their names, and new ones take the names of
///   those they replace. Nodes that no output needs are gone.
class ForwardRewriter {
 public:
  ForwardRewriter(const Graph& graph, const ForwardRules& rules);
  Graph run();

  /// For rules.
  const Temporary& temporary(TemporaryId id) const { return temporaries_[id.index()]; }
  Rewritten make_temporary(ValueId value, std::any note = {});
  /// The value, realized anew if it is a temporary.
  ValueId realize(Rewritten item);
  ValueId realize_shared(Rewritten item);
  /// A node like one of the old graph on other operands: its op, attributes, bodies, name and the
  /// names of its results.
  std::vector<ValueId> forward(NodeId original, const std::vector<ValueId>& operands);
  ValueId constant(Constant value, std::string_view name = "");
  /// A new node without a source's name; its result is called like `name`.
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
  std::unordered_map<TemporaryId, ValueId> realizations_;  // those that are shared
};

}  // namespace tenon
