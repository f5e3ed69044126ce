#pragma once

#include "ir/graph.h"
#include "passes/rewrite/pattern.h"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rewrite {

/// What a variable of a rule stands for.
struct Binding {
  bool is_bound = false;
  /// invalid for an optional operand that is missing
  ValueId value;
  /// of `...xs`
  std::vector<ValueId> values;
  /// absent where the node leaves it open
  std::optional<AttrValue> attr;
  /// of `..r`
  Attributes attrs;
  double number = 0;
};

/// What is still read while a graph is being rewritten; dead nodes go at the end, all at once.
struct Uses {
  /// reads by live nodes; being an output is not counted
  IdMap<ValueId, std::uint32_t> counts;
  IdMap<NodeId, char> is_dead;
};

/// A place where a rule's pattern fits, as its condition and replacement see it.
class Match {
 public:
  Match(Graph& graph, const Uses& uses, const Names& names, NodeId root,
        std::vector<Binding>& bindings, const std::vector<NodeId>& inside)
      : graph_(graph),
        uses_(uses),
        names_(names),
        root_(root),
        bindings_(bindings),
        inside_(inside) {}

  Graph& graph() const { return graph_; }
  NodeId root() const { return root_; }
  const Node& root_node() const { return graph_.node(root_); }
  ValueId root_value() const { return root_node().results.front(); }
  const Type& root_type() const;

  /// Whether the variable stands for something: an operand or attribute that is there.
  bool has(std::string_view name) const;
  ValueId value(std::string_view name) const { return binding(name).value; }
  const std::vector<ValueId>& values(std::string_view name) const { return binding(name).values; }
  double number(std::string_view name) const { return binding(name).number; }
  /// The number in as few digits as its element type needs: 1e-05 for the f32 nearest to it.
  double decimal(std::string_view name) const;
  const Attributes& attrs(std::string_view name) const { return binding(name).attrs; }
  /// The node that makes a variable's value. Asks that there is one.
  const Node& node(std::string_view name) const;
  /// The variable's type, or null where that is not known to be a tensor. Types stay where they are
  /// while nodes are made; references to nodes do not.
  const TensorType* type(std::string_view name) const;
  const TensorType* type(ValueId value) const;
  const std::optional<AttrValue>& attr(std::string_view name) const { return binding(name).attr; }
  const Dims& dims(std::string_view attr) const { return std::get<Dims>(*binding(attr).attr); }
  const Dim& dim(std::string_view attr) const { return std::get<Dim>(*binding(attr).attr); }
  DType dtype(std::string_view attr) const { return std::get<DType>(*binding(attr).attr); }
  bool flag(std::string_view attr) const { return std::get<bool>(*binding(attr).attr); }

  /// Gives the replacement a variable that the pattern does not have.
  void set(std::string_view name, AttrValue attr) const;
  void set_value(std::string_view name, ValueId value) const;

  /// False, with the reason for whoever asks why nothing was done.
  bool refuse(std::string reason) const;
  const std::string& refusal() const { return refusal_; }

  /// Whether nothing outside of the match reads what its nodes make on the way.
  bool is_alone() const;
  std::size_t use_count(ValueId value) const { return uses_.counts[value]; }
  /// Whether the value has one reader and is no output.
  bool is_read_once(ValueId value) const;
  /// the root first
  const std::vector<NodeId>& inside() const { return inside_; }

  /// A node before the root; gives its first result.
  ValueId make(std::string_view op, std::vector<ValueId> operands, Attributes attrs = {}) const;
  ValueId make_constant(Constant value) const;
  ValueId make_scalar(double value, DType dtype) const;
  /// Says that `made` does the work of `old`, whose names it takes once nothing reads `old`.
  void succeed(ValueId old, ValueId made) const { successors_.emplace_back(old, made); }
  const std::vector<std::pair<ValueId, ValueId>>& successors() const { return successors_; }
  /// The same elements under other extents; the value itself where it has them. Nothing where an
  /// extent cannot be written down.
  ValueId make_reshape(ValueId value, Dims shape) const;
  const std::vector<NodeId>& made() const { return made_; }

 private:
  Binding& binding(std::string_view name) const;

  Graph& graph_;
  const Uses& uses_;
  const Names& names_;
  NodeId root_;
  std::vector<Binding>& bindings_;
  const std::vector<NodeId>& inside_;
  mutable std::deque<TensorType> types_;
  mutable std::optional<Type> root_type_;
  mutable std::vector<NodeId> made_;
  mutable std::vector<std::pair<ValueId, ValueId>> successors_;
  mutable std::string refusal_;
};

/// Looks for one way in which `pattern` fits the node and `accept` agrees; what it binds stays in
/// `bindings`. `inside` gets the nodes that the pattern covers, the root first.
bool find_match(const Graph& graph, const Term& pattern, NodeId root,
                std::vector<Binding>& bindings, std::vector<NodeId>& inside,
                const std::function<bool()>& accept);

/// Whether an attribute may hold the dim: numbers and the graph's own symbols, but not extents that
/// data decides, whose names follow a value's.
bool is_written_down(const Dim& dim);

/// The number that every element of a constant is; nothing for other values.
std::optional<double> uniform_value(const Graph& graph, ValueId value);

}  // namespace tenon::rewrite
