// QKV fusion (horizontal fusion): replaces several matrix products of one operand by one, such as
// the query, key and value projections of attention.
#include "base/error.h"
#include "ops/definition/registry.h"
#include "passes/definition/pass.h"

#include <algorithm>
#include <cstring>

namespace tenon::passes {
namespace {

// A product with constant weights, and the bias that is added to it.
struct JoinableGemm {
  NodeId matmul, add;  // invalid without a bias
  ValueId weights, bias, result;
};

std::int64_t columns(const Graph& graph, ValueId weights) {
  return graph.constant_of(weights)->shape()[1];
}

class GemmFuser {
 public:
  GemmFuser(Graph& graph, Remarks* remarks)
      : graph_(graph), remarks_(remarks), positions_(graph.node_id_bound()) {
    std::size_t position = 0;
    for (NodeId id : graph.nodes_in_order()) positions_[id] = position++;
  }

  void run() {
    for (ValueId input : graph_.inputs()) join_readers(input);
    for (NodeId id : graph_.nodes_in_order()) {
      const std::vector<ValueId> results = graph_.node(id).results;
      for (ValueId result : results) {
        if (result) join_readers(result);
      }
    }
    graph_.erase_dead();
  }

 private:
  std::optional<JoinableGemm> product_of(NodeId id, ValueId operand) const {
    const Node& node = graph_.node(id);
    if (node.op->name != "matmul" || node.operands[0] != operand || node.operands[1] == operand ||
        !node.attrs.is_empty())
      return std::nullopt;
    const Constant* weights = graph_.constant_of(node.operands[1]);
    if (!weights || weights->shape().size() != 2) return std::nullopt;
    JoinableGemm product{id, {}, node.operands[1], {}, node.results[0]};
    const std::vector<NodeId>& readers = graph_.readers(product.result);
    if (graph_.is_output(product.result) || readers.size() != 1) return product;
    const Node& add = graph_.node(readers.front());
    if (add.op->name != "add") return product;
    const ValueId bias = add.operands[add.operands[0] == product.result ? 1 : 0];
    const Constant* added = graph_.constant_of(bias);
    const bool is_bias = added && added->shape().size() == 1 &&
                         added->shape()[0] == weights->shape()[1] &&
                         graph_.value(add.results[0]).type == graph_.value(product.result).type;
    if (!is_bias) return product;
    product.add = readers.front();
    product.bias = bias;
    product.result = add.results[0];
    return product;
  }

  // Returns whether only attention reads the value, through moves: attention reads through those,
  // while slices for other readers would be copies.
  bool leads_to_attention(ValueId value) const {
    constexpr int kMostMoves = 8;
    for (int k = 0; k < kMostMoves; ++k) {
      const std::vector<NodeId>& readers = graph_.readers(value);
      if (graph_.is_output(value) || readers.empty()) return false;
      const auto is_other = [&](NodeId id) { return id != readers.front(); };
      if (std::ranges::any_of(readers, is_other)) return false;
      const Node& reader = graph_.node(readers.front());
      if (reader.op->name == "attention") return true;
      const bool moves = reader.op->precision == Precision::MovesOnly &&
                         reader.results.size() == 1 && reader.bodies.empty();
      if (!moves) return false;
      value = reader.results[0];
    }
    return false;
  }

  void join_readers(ValueId operand) {
    std::vector<JoinableGemm> products;
    for (NodeId reader : graph_.readers(operand)) {
      auto product = product_of(reader, operand);
      if (!product || !leads_to_attention(product->result)) continue;
      const auto is_alike = [&](const JoinableGemm& other) {
        const Constant &a = *graph_.constant_of(other.weights),
                       &b = *graph_.constant_of(product->weights);
        return a.dtype() == b.dtype() && a.shape()[0] == b.shape()[0] &&
               bool(other.bias) == bool(product->bias) && other.matmul != product->matmul;
      };
      if (std::ranges::all_of(products, is_alike)) products.push_back(*product);
    }
    if (products.size() > 1) join(operand, products);
  }

  // Concatenates along columns.
  Tensor joined(const std::vector<JoinableGemm>& products, ValueId JoinableGemm::*which) const {
    std::vector<Tensor> parts;
    std::int64_t width = 0;
    for (const JoinableGemm& product : products) {
      parts.push_back(graph_.constant_of(product.*which)->materialise());
      width += parts.back().shape().back();
    }
    Shape shape = parts.front().shape();
    shape.back() = width;
    Tensor all(parts.front().dtype(), shape);
    std::byte* to = all.mutable_bytes().data();
    const std::int64_t rows = shape.size() == 1 ? 1 : shape[0];
    for (std::int64_t row = 0; row < rows; ++row) {
      for (const Tensor& part : parts) {
        const std::size_t bytes = part.byte_size() / static_cast<std::size_t>(rows);
        std::memcpy(to, part.bytes().data() + static_cast<std::size_t>(row) * bytes, bytes);
        to += bytes;
      }
    }
    return all;
  }

  ValueId add_node(NodeId before, const char* op, std::vector<ValueId> operands, Attributes attrs,
                   const std::string& name) {
    Graph::NewNode node;
    node.op = &find_op(op);
    node.operands = std::move(operands);
    node.attrs = std::move(attrs);
    node.results = {graph_.free_name(name)};
    return graph_.node(graph_.add_node(std::move(node), before)).results[0];
  }
  ValueId add_constant(NodeId before, Tensor value, const std::string& name) {
    Attributes attrs;
    attrs.set("value", Constant(std::move(value)));
    return add_node(before, "constant", {}, std::move(attrs), name);
  }

  void join(ValueId operand, const std::vector<JoinableGemm>& products) {
    const NodeId before = std::ranges::min_element(products, {}, [&](const JoinableGemm& product) {
                            return positions_[product.matmul];
                          })->matmul;
    const std::string name = graph_.value(products.front().result).name + "_joined";
    const ValueId weights =
        add_constant(before, joined(products, &JoinableGemm::weights), name + "_weights");
    ValueId all = add_node(before, "matmul", {operand, weights}, {}, name);
    if (products.front().bias) {
      const ValueId bias =
          add_constant(before, joined(products, &JoinableGemm::bias), name + "_bias");
      all = add_node(before, "add", {all, bias}, {}, name + "_added");
    }
    const auto last = static_cast<std::int64_t>(graph_.value(all).type.tensor().rank()) - 1;
    std::int64_t at = 0;
    for (const JoinableGemm& product : products) {
      const std::int64_t end = at + columns(graph_, product.weights);
      Attributes attrs;
      attrs.set("starts", Dims{at});
      attrs.set("ends", Dims{end});
      attrs.set("axes", Dims{last});
      const std::string result = graph_.value(product.result).name;
      const ValueId part = add_node(before, "slice", {all}, std::move(attrs), result + "_part");
      if (remarks_) remarks_->say(result, "fuse-horizontal", concat("is a part of '", name, "'"));
      graph_.replace_uses(product.result, part);
      at = end;
    }
  }

  Graph& graph_;
  Remarks* remarks_;
  IdMap<NodeId, std::size_t> positions_;
};

}  // namespace

/// Horizontal fusion of matrix products with constant weights that read one value and whose results
/// feed attention: one launch instead of three, and larger matrices.
Graph fuse_horizontal(Graph graph, const PassOptions& options) {
  GemmFuser(graph, options.remarks).run();
  return graph;
}

}  // namespace tenon::passes
