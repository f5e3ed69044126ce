#pragma once

#include "base/ids.h"
#include "ir/op_def.h"

#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon {

using NodeId = Id<struct NodeTag>;
using ValueId = Id<struct ValueTag>;

/// A tensor (or sequence, or optional) that flows: an input of the graph or a node's result.
struct Value {
  /// unique in its graph
  std::string name;
  Type type;
  /// invalid for a graph input
  NodeId producer;
};

/// One application of an operator. Nodes see only the values named in `operands`; a body graph's
/// outer values come in through the node's operands too.
struct Node {
  /// into the op table, which outlives every graph
  const OpDef* op = nullptr;
  /// By position; invalid where an optional one is missing, shorter where the last ones are.
  std::vector<ValueId> operands;
  /// likewise, where an optional one is not wanted
  std::vector<ValueId> results;
  Attributes attrs;
  std::vector<Graph> bodies;
  /// the source's own name for the node; may be empty
  std::string name;
};

/// Nodes in an order in which every value is made before it is read. Copies deeply, moves cheaply.
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
  /// What the model said about itself (producer, licence, …), kept for whoever writes it again.
  std::map<std::string, std::string> metadata;

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
    /// One name for each result: "" picks a free one, "_" leaves an optional result out. Its
    /// length is the number of results of an op with a variadic result.
    std::vector<std::string> results;
    std::string name;
  };
  /// Appends a node (before `before`, if given), checks operands and attributes against its op and
  /// infers its results' types. Throws Error where they do not fit.
  NodeId add_node(NewNode node, NodeId before = {});
  /// A `constant` node; `op` is the table's constant op.
  ValueId add_constant(const OpDef& op, Constant value, std::string value_name = "");

  const Node& node(NodeId id) const;
  const Value& value(ValueId id) const;
  std::string_view op_name(NodeId id) const { return node(id).op->name; }
  /// Where a message should point: "node 'name' (op)".
  std::string location(NodeId id) const;
  /// The value of that name, or an invalid id.
  ValueId find(std::string_view value_name) const;

  std::size_t node_count() const { return live_nodes_; }
  /// ids are below this; some may be erased
  std::size_t node_id_bound() const;
  std::size_t value_id_bound() const;
  bool is_live(NodeId id) const;

  /// Iterates over the ids in order; nodes may be erased and inserted on the way.
  class Order;
  Order nodes_in_order() const;
  /// The node after this one; of an erased node, the one that was.
  NodeId next(NodeId id) const;
  NodeId first() const { return first_; }
  NodeId last() const { return last_; }

  /// The nodes that read a value, once per use; reading as a graph output is not a use.
  const std::vector<NodeId>& readers(ValueId id) const;
  bool is_output(ValueId id) const;
  /// Known elements of a small integer value, as numbers or symbols; null if not known.
  const Dims* known_elements(ValueId id) const;
  /// The constant's value if the value comes from a `constant` node; null otherwise.
  const Constant* constant_of(ValueId id) const;

  /// Makes every reader of `from` (and the graph's outputs) read `to`, but for the node that makes
  /// `to` from it; `from` keeps its producer.
  void replace_uses(ValueId from, ValueId to);
  void set_operand(NodeId id, std::size_t position, ValueId value);
  void set_attribute(NodeId id, std::string_view attr, AttrValue value);
  /// Removes a node whose results nobody reads.
  void erase(NodeId id);
  /// Removes every node none of whose results reaches an output. Gives how many went.
  std::size_t erase_dead();
  void rename(ValueId id, std::string new_name);
  /// Exchanges the names of two values; for passes that keep an output's name.
  void swap_names(ValueId a, ValueId b);
  /// A name not in use, like `base` ("base", "base_1", …).
  std::string free_name(std::string_view base) const;
  /// States a type, where inference cannot tell it; printed with the value from then on.
  void set_type(ValueId id, Type type);
  /// Whether the type of a node's result was set, rather than inferred.
  bool has_stated_type(ValueId id) const { return stated_.contains(id); }
  /// Infers the node's result types again, after its operands' types changed. A stated type stays
  /// while it says more.
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
  std::unordered_set<std::string> input_symbols_;  // no result may take one of these for its own
  std::vector<ValueId> inputs_, outputs_;
  std::vector<std::uint32_t> output_uses_;  // by value
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
    NodeId at_, next_;  // what is inserted behind the node visited is not visited
  };
  explicit Order(const Graph* graph) : graph_(graph) {}
  Iterator begin() const { return {graph_, graph_->first()}; }
  Iterator end() const { return {graph_, NodeId{}}; }

 private:
  const Graph* graph_;
};

/// Same structure: names, types, ops, attributes, order, outputs, metadata.
bool identical(const Graph& a, const Graph& b);

}  // namespace tenon
