#pragma once

#include "base/ids.h"
#include "ir/op_def.h"

#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon::inline ir {

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

/// SSA value of a graph: a tensor, sequence or optional that is a graph input or a node's result.
struct Value {
  /// Unique in its graph.
  std::string name;
  Type type;
  /// Invalid for a graph input.
  NodeId producer;
};

/// Application of an operator. Nodes read only the values in `operands`; the outer values of a body
/// graph are operands of the node too.
struct Node {
  /// Points into the op table, which outlives every graph.
  const OpDef* op = nullptr;
  /// By position. Missing optional operands are invalid ids; trailing ones are absent.
  std::vector<ValueId> operands;
  /// By position, like `operands`: invalid for an optional result that is not computed.
  std::vector<ValueId> results;
  Attributes attrs;
  std::vector<Graph> bodies;
  /// Name of the node in the source model; may be empty.
  std::string name;
};

/// Dataflow graph in topological order. Copies deeply, moves cheaply.
class Graph {
 public:
  Graph();
  explicit Graph(std::string graph_name);
  Graph(const Graph&);
  Graph(Graph&&) noexcept;
  Graph& operator=(const Graph&);
  Graph& operator=(Graph&&) noexcept;
  ~Graph();

  std::string name;
  /// Metadata of the source model (producer, licence, …), preserved for exporters.
  std::map<std::string, std::string> metadata;
  /// A value that one run passes to the next. Its current value is an input and its next value an
  /// output, so that a graph stays a pure function; its name and type are those of the input.
  struct State {
    /// Positions in `inputs` and `outputs`.
    std::size_t input = 0, output = 0;
    /// Value before the first run; absent: zeros if `starts_with_zeros`, else the caller's.
    std::optional<Constant> initial = {};
    bool starts_with_zeros = false;
    /// If false, the current value survives the run that computes the next one.
    bool may_overwrite = true;
  };
  /// Passes keep the inputs and outputs of states.
  std::vector<State> states;

  ValueId add_input(std::string input_name, Type type);
  void add_output(ValueId value);
  void set_outputs(std::vector<ValueId> values);
  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }

  struct NewNode {
    const OpDef* op = nullptr;
    std::vector<ValueId> operands;
    Attributes attrs;
    std::vector<Graph> bodies;
    /// One name per result: "" generates a free name, "_" omits an optional result. For an op with
    /// a variadic result, the length is the number of results.
    std::vector<std::string> results;
    std::string name;
  };
  /// Appends a node (or inserts it before `before`), checks operands and attributes against its op
  /// and infers the result types. Throws Error if they do not fit.
  NodeId add_node(NewNode node, NodeId before = {});
  /// Appends a `constant` node; `op` is the table's constant op.
  ValueId add_constant(const OpDef& op, Constant value, std::string value_name = "");

  const Node& node(NodeId id) const;
  const Value& value(ValueId id) const;
  std::string_view op_name(NodeId id) const { return node(id).op->name; }
  /// Location for messages: "node 'name' (op)".
  std::string location(NodeId id) const;
  /// Returns the value of that name, or an invalid id.
  ValueId find(std::string_view value_name) const;

  std::size_t node_count() const { return live_nodes_; }
  /// Exclusive upper bound of the ids; some of them may be erased.
  std::size_t node_id_bound() const;
  std::size_t value_id_bound() const;
  bool is_live(NodeId id) const;

  /// Iterates over the ids in order. Nodes may be erased and inserted during the iteration.
  class Order;
  Order nodes_in_order() const;
  /// Returns the next node; for an erased node, its successor at the time of erasure.
  NodeId next(NodeId id) const;
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }

  /// Returns the nodes that read a value, once per use. A graph output is not a use.
  const std::vector<NodeId>& readers(ValueId id) const;
  bool is_output(ValueId id) const;
  /// Known elements of a small integer value, as numbers or symbols; null if unknown.
  const Dims* known_elements(ValueId id) const;
  /// The constant of a value that a `constant` node produces; null for other values.
  const Constant* constant_of(ValueId id) const;

  /// Replaces `from` by `to` in all uses and graph outputs, except in the producer of `to`, which
  /// may read `from`. `from` keeps its producer.
  void replace_uses(ValueId from, ValueId to);
  void set_operand(NodeId id, std::size_t position, ValueId value);
  void set_attribute(NodeId id, std::string_view attr, AttrValue value);
  /// Removes a node whose results have no uses.
  void erase(NodeId id);
  /// Dead-code elimination: removes every node without a path to an output. Returns the number
  /// removed.
  std::size_t erase_dead();
  void rename(ValueId id, std::string new_name);
  /// Exchanges the names of two values, for passes that preserve an output's name.
  void swap_names(ValueId a, ValueId b);
  /// Returns a free name derived from `base` ("base", "base_1", …).
  std::string free_name(std::string_view base) const;
  /// Declares a type that inference cannot derive. The text form prints it with the value.
  void set_type(ValueId id, Type type);
  /// Returns whether the type of a node's result was declared rather than inferred.
  bool has_stated_type(ValueId id) const { return stated_.contains(id); }
  /// Repeats type inference of a node after its operands' types changed. A declared type stays
  /// while it is more specific.
  void infer(NodeId id);
  Node& mutable_node(NodeId id);

 private:
  struct Link;

  bool is_live(ValueId id) const;
  ValueId new_value(std::string value_name, Type type, NodeId producer);
  std::vector<ValueId> name_results(const OpDef& op, std::vector<std::string> names);
  void link(NodeId id, NodeId before);
  void unlink(NodeId id);
  void store_inferred(NodeId id, InferOutput inferred);
  void add_use(ValueId value, NodeId reader);
  void drop_use(ValueId value, NodeId reader);
  void forget(NodeId id);

  std::vector<Node> nodes_;
  std::vector<Link> links_;
  std::vector<Value> values_;
  std::vector<std::vector<NodeId>> readers_;
  std::unordered_map<std::string, ValueId> by_name_;
  std::unordered_map<ValueId, Dims> known_;
  std::unordered_set<ValueId> stated_;
  // symbols of the inputs, which results must not reuse
  std::unordered_set<std::string> input_symbols_;
  std::vector<ValueId> inputs_, outputs_;
  std::vector<std::uint32_t> output_uses_;  // indexed by value
  NodeId first_, last_;
  std::size_t live_nodes_ = 0;
  mutable std::unordered_map<std::string, std::uint32_t> next_suffix_;
};

struct Graph::Link {
  NodeId previous, next;
  bool is_live = true;
};

class Graph::Order {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = NodeId;
    using difference_type = std::ptrdiff_t;
    using pointer = const NodeId*;
    using reference = NodeId;
    Iterator(const Graph* graph, NodeId at) : graph_(graph), at_(at) {
      if (at_) next_ = graph_->next(at_);
    }
    NodeId operator*() const { return at_; }
    Iterator& operator++() {
      at_ = next_;
      while (at_ && !graph_->is_live(at_)) at_ = graph_->next(at_);
      if (at_) next_ = graph_->next(at_);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    const Graph* graph_;
    NodeId at_, next_;  // nodes inserted after `at_` are not visited
  };
  explicit Order(const Graph* graph) : graph_(graph) {}
  Iterator begin() const { return {graph_, graph_->first()}; }
  Iterator end() const { return {graph_, NodeId{}}; }

 private:
  const Graph* graph_;
};

/// Compares structure: names, types, ops, attributes, order, outputs, metadata.
bool identical(const Graph& a, const Graph& b);

}  // namespace tenon::inline ir
