#include "frontends/onnx/sort_nodes.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/onnx/outer_names.h"
#include "frontends/onnx/schema/onnx.pb.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::GraphProto;
using onnx_schema::NodeProto;
using Nodes = google::protobuf::RepeatedPtrField<NodeProto>;
using Names = std::unordered_set<std::string_view>;
using Order = std::vector<int>;

std::string text_of(const NodeProto& node) {
  return node.name().empty() ? node.op_type()
                             : concat("'", node.name(), "' (", node.op_type(), ")");
}

/// The nodes of one list and the nodes whose results they read.
class Dependences {
 public:
  /// `given` are the names of the list's inputs and initializers.
  Dependences(const Nodes& nodes, const Names& given) : nodes_(nodes), producers_(nodes.size()) {
    std::unordered_map<std::string_view, int> producer;
    for (int k = 0; k < nodes.size(); ++k) {
      for (const std::string& name : nodes[k].output()) {
        if (!name.empty() && !given.contains(name)) producer.emplace(name, k);
      }
    }
    for (int k = 0; k < nodes.size(); ++k) {
      for (const std::string& name : names_read(nodes[k])) {
        const auto found = producer.find(name);
        if (found == producer.end()) continue;
        producers_[index(k)].push_back(found->second);
        if (found->second >= k && early_.empty()) early_ = early_text(k, name);
      }
    }
  }

  /// Describes the first node that reads a later node's result; empty if the nodes are sorted.
  const std::string& early() const { return early_; }

  /// Returns the sorted positions.
  Order sorted() const {
    std::vector<Order> readers(producers_.size());
    std::vector<std::size_t> missing(producers_.size());
    std::priority_queue<int, Order, std::greater<>> ready;
    for (int k = 0; k < nodes_.size(); ++k) {
      for (const int producer : producers_[index(k)]) readers[index(producer)].push_back(k);
      missing[index(k)] = producers_[index(k)].size();
      if (missing[index(k)] == 0) ready.push(k);
    }
    Order order;
    while (!ready.empty()) {
      order.push_back(ready.top());
      ready.pop();
      for (const int reader : readers[index(order.back())]) {
        if (--missing[index(reader)] == 0) ready.push(reader);
      }
    }
    if (order.size() < producers_.size()) refuse_cycle(order);
    return order;
  }

 private:
  static std::size_t index(int k) { return static_cast<std::size_t>(k); }

  static std::vector<std::string> names_read(const NodeProto& node) {
    std::vector<std::string> names(node.input().begin(), node.input().end());
    OuterNames outer(names);
    for (const auto& attr : node.attribute()) {
      if (attr.has_g()) outer.visit(attr.g());
      for (const GraphProto& body : attr.graphs()) outer.visit(body);
    }
    return names;
  }

  std::string early_text(int reader, const std::string& name) const {
    return concat("node ", text_of(nodes_[reader]), " reads '", name, "' before it is made");
  }

  // Every node without a position has a producer without one: following these reaches a cycle.
  [[noreturn]] void refuse_cycle(const Order& order) const {
    std::vector<bool> is_placed(producers_.size(), false);
    for (const int k : order) is_placed[index(k)] = true;
    std::vector<std::ptrdiff_t> position(producers_.size(), -1);
    Order path;
    auto at =
        static_cast<int>(std::find(is_placed.begin(), is_placed.end(), false) - is_placed.begin());
    while (position[index(at)] < 0) {
      position[index(at)] = std::ssize(path);
      path.push_back(at);
      const Order& producers = producers_[index(at)];
      at = *std::find_if(producers.begin(), producers.end(),
                         [&](int k) { return !is_placed[index(k)]; });
    }
    path.erase(path.begin(), path.begin() + position[index(at)]);
    path.push_back(at);
    constexpr std::size_t max_shown = 8;
    std::string text = text_of(nodes_[at]);
    for (std::size_t k = 1; k < path.size() && k <= max_shown; ++k) {
      text += concat(" reads from ", text_of(nodes_[path[k]]));
    }
    if (path.size() > max_shown + 1) text += " ...";
    throw Error("the nodes form a cycle")
        .at("node ", text_of(nodes_[at]))
        .expected("no node to depend on its own results")
        .got(text);
  }

  const Nodes& nodes_;
  std::vector<Order> producers_;
  std::string early_;
};

// Swaps the nodes into the order, cycle by cycle of the permutation.
void apply(const Order& order, Nodes& nodes) {
  Order from = order;
  for (int k = 0; k < nodes.size(); ++k) {
    int at = k;
    while (from[static_cast<std::size_t>(at)] != k) {
      const int next = std::exchange(from[static_cast<std::size_t>(at)], at);
      nodes.SwapElements(at, next);
      at = next;
    }
    from[static_cast<std::size_t>(at)] = at;
  }
}

class Sorter {
 public:
  std::vector<std::string> warnings;

  void sort(GraphProto& graph) {
    Names given;
    for (const auto& input : graph.input()) given.insert(input.name());
    for (const auto& tensor : graph.initializer()) given.insert(tensor.name());
    for (const auto& tensor : graph.sparse_initializer()) given.insert(tensor.values().name());
    sort(*graph.mutable_node(), given, concat("graph '", graph.name(), "'"));
  }

  // Bodies come first: their nodes must be sorted when a node's outer names are read.
  void sort(Nodes& nodes, const Names& given, const std::string& owner) {
    for (NodeProto& node : nodes) {
      for (auto& attr : *node.mutable_attribute()) {
        if (attr.has_g()) sort(*attr.mutable_g());
        for (GraphProto& body : *attr.mutable_graphs()) sort(body);
      }
    }
    const Dependences dependences(nodes, given);
    if (dependences.early().empty()) return;
    const Order order = dependences.sorted();
    warnings.push_back(
        concat("the nodes of ", owner, " are not sorted topologically: ", dependences.early()));
    apply(order, nodes);
  }
};

}  // namespace

std::vector<std::string> sort_nodes(onnx_schema::ModelProto& model) {
  Sorter sorter;
  sorter.sort(*model.mutable_graph());
  for (auto& function : *model.mutable_functions()) {
    const Names given(function.input().begin(), function.input().end());
    sorter.sort(*function.mutable_node(), given, concat("function '", function.name(), "'"));
  }
  return std::move(sorter.warnings);
}

}  // namespace tenon::frontends::onnx
