#pragma once

#include "ir/graph.h"
#include "passes/rewrite/pattern.h"

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::passes::rewrite {

/// Binding of a rule's variable.
struct PatternBinding {
  bool is_bound = false;
  /// invalid for a missing optional operand
  ValueId value;
  /// of `...xs`
  std::vector<ValueId> values;
  /// absent if the node does not set it
  std::optional<AttrValue> attr;
  /// of `..r`
  Attributes attrs;
  double number = 0;
};

/// Use counts during the rewrite; dead nodes are erased at the end.
struct Uses {
  /// reads by live nodes; being an output does not count
  IdMap<ValueId, std::uint32_t> counts;
  IdMap<NodeId, char> is_dead;
};

/// A match of a rule's pattern, as its condition and replacement see it.
class Match {
 public:
  Match(Graph& graph, const Uses& uses, const Names& names, NodeId root,
        std::vector<PatternBinding>& bindings, const std::vector<NodeId>& inside)
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

  /// Returns whether the variable is bound to a present operand or attribute.
  bool has(std::string_view name) const;
  ValueId value(std::string_view name) const { return binding(name).value; }
  const std::vector<ValueId>& values(std::string_view name) const { return binding(name).values; }
  double number(std::string_view name) const { return binding(name).number; }
  /// Returns the number with as few digits as its element type needs: 1e-05 for the nearest f32.
  double decimal(std::string_view name) const;
  const Attributes& attrs(std::string_view name) const { return binding(name).attrs; }
  /// Returns the producer of a variable's value, which must exist.
  const Node& node(std::string_view name) const;
  /// Returns the variable's type, or null if it is not known to be a tensor. The reference stays
  /// valid while nodes are added; references to nodes do not.
  const TensorType* type(std::string_view name) const;
  const TensorType* type(ValueId value) const;
  const std::optional<AttrValue>& attr(std::string_view name) const { return binding(name).attr; }
  const Dims& dims(std::string_view attr) const { return std::get<Dims>(*binding(attr).attr); }
  const Dim& dim(std::string_view attr) const { return std::get<Dim>(*binding(attr).attr); }
  DType dtype(std::string_view attr) const { return std::get<DType>(*binding(attr).attr); }
  bool flag(std::string_view attr) const { return std::get<bool>(*binding(attr).attr); }

  /// Binds a variable that only the replacement uses.
  void set(std::string_view name, AttrValue attr) const;
  void set_value(std::string_view name, ValueId value) const;

  /// Returns false and records the reason for remarks.
  bool refuse(std::string reason) const;
  const std::string& refusal() const { return refusal_; }

  /// Returns whether intermediate values of the match have no readers outside of it.
  bool is_alone() const;
  std::size_t use_count(ValueId value) const { return uses_.counts[value]; }
  /// Returns whether the value has one reader and is not an output.
  bool is_read_once(ValueId value) const;
  /// the root first
  const std::vector<NodeId>& inside() const { return inside_; }

  /// Adds a node before the root; returns its first result.
  ValueId make(std::string_view op, std::vector<ValueId> operands, Attributes attrs = {}) const;
  ValueId make_constant(Constant value) const;
  ValueId make_scalar(double value, DType dtype) const;
  /// Declares that `made` replaces `old`, whose names it takes once `old` has no readers.
  void succeed(ValueId old, ValueId made) const { successors_.emplace_back(old, made); }
  const std::vector<std::pair<ValueId, ValueId>>& successors() const { return successors_; }
  /// Reshapes the value, or returns it if the extents are equal. Returns an invalid value if an
  /// extent cannot be an attribute.
  ValueId make_reshape(ValueId value, Dims shape) const;
  const std::vector<NodeId>& made() const { return made_; }

 private:
  PatternBinding& binding(std::string_view name) const;

  Graph& graph_;
  const Uses& uses_;
  const Names& names_;
  NodeId root_;
  std::vector<PatternBinding>& bindings_;
  const std::vector<NodeId>& inside_;
  mutable std::deque<TensorType> types_;
  mutable std::optional<Type> root_type_;
  mutable std::vector<NodeId> made_;
  mutable std::vector<std::pair<ValueId, ValueId>> successors_;
  mutable std::string refusal_;
};

/// Searches one match of `pattern` at the node that `accept` agrees with; its bindings stay in
/// `bindings`. `inside` receives the matched nodes, the root first.
bool find_match(const Graph& graph, const PatternTerm& pattern, NodeId root,
                std::vector<PatternBinding>& bindings, std::vector<NodeId>& inside,
                const std::function<bool()>& accept);

/// Returns whether an attribute may hold the dim: numbers and the graph's own symbols, but not
/// data-dependent extents, whose names follow a value's.
bool is_written_down(const Dim& dim);

/// Returns the number that every element of a constant equals; nullopt for other values.
std::optional<double> uniform_value(const Graph& graph, ValueId value);

}  // namespace tenon::passes::rewrite
