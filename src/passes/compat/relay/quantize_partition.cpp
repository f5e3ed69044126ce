#include "base/error.h"
#include "base/text.h"
#include "passes/compat/relay/forward_rewrite.h"
#include "passes/compat/relay/stages.h"
#include "passes/definition/pass.h"

namespace tenon::passes {
namespace {

using Results = std::optional<std::vector<Rewritten>>;

// The only kind of temporary: a value inside an open 8-bit section.
class QuantizePartitioner {
 public:
  explicit QuantizePartitioner(const QuantizePartitionOptions& options) : options_(options) {
    rules_.realize = [this](ForwardRewriter& rewriter, const Temporary& open) {
      Attributes hint;
      hint.set("dtype", options_.dtype);
      const std::string name = rewriter.graph().value(open.value).name;
      const ValueId hinted = rewriter.call("cast_hint", {open.value}, hint, name + "_hint");
      return rewriter.call("stop_fusion", {hinted}, {}, name + "_closed");
    };
    rules_.realize_outputs = options.close_outputs;
    const auto rule = [this](auto member) {
      return [this, member](ForwardRewriter& rewriter, const RewrittenNode& node) {
        return (this->*member)(rewriter, node);
      };
    };
    rules_.by_op = {{"conv", rule(&QuantizePartitioner::convolution)},
                    {"clip", rule(&QuantizePartitioner::stay_inside)},
                    {"relu", rule(&QuantizePartitioner::stay_inside)},
                    {"max_pool", rule(&QuantizePartitioner::stay_inside)},
                    {"add", rule(&QuantizePartitioner::add)},
                    {"mul", rule(&QuantizePartitioner::multiply)},
                    {"average_pool", rule(&QuantizePartitioner::global_average)}};
  }

  Graph run(const Graph& graph) const { return ForwardRewriter(graph, rules_).run(); }

 private:
  // Closes a section for one reader. The reference implementation adds new nodes for each.
  ValueId close(ForwardRewriter& rewriter, const Rewritten& item) const {
    return options_.share ? rewriter.realize_shared(item) : rewriter.realize(item);
  }

  static Results plain(std::vector<ValueId> values) {
    std::vector<Rewritten> results;
    for (const ValueId value : values) results.push_back({value, {}});
    return results;
  }
  static Results open(ForwardRewriter& rewriter, const std::vector<ValueId>& values) {
    std::vector<Rewritten> results;
    for (const ValueId value : values)
      results.push_back(value ? rewriter.make_temporary(value) : Rewritten{});
    return results;
  }

  static std::size_t rank_of(const RewrittenNode& node) {
    const Type& type = node.graph.value(node.graph.node(node.id).operands[0]).type;
    return type.is_tensor() ? type.tensor().rank() : 0;
  }

  // Returns the operands' values for a node of which only the first operand may be in a section.
  static std::vector<ValueId> with_first(const RewrittenNode& node, ValueId first) {
    std::vector<ValueId> values{first};
    for (std::size_t k = 1; k < node.operands.size(); ++k) values.push_back(node.operands[k].value);
    return values;
  }

  Results convolution(ForwardRewriter& rewriter, const RewrittenNode& node) const {
    if (rank_of(node) != 4) return std::nullopt;
    for (std::size_t k = 1; k < node.operands.size(); ++k) {
      if (!node.operands[k].is_temporary()) continue;
      throw Error("quantize-partition: a convolution's weight comes out of an 8-bit section",
                  ErrorKind::Unsupported)
          .at(node.graph.location(node.id))
          .expected("a weight that no convolution made")
          .got("operand '", node.graph.value(node.graph.node(node.id).operands[k]).name, "'");
    }
    return open(rewriter,
                rewriter.forward(node.id, with_first(node, close(rewriter, node.operands[0]))));
  }

  Results stay_inside(ForwardRewriter& rewriter, const RewrittenNode& node) const {
    if (!node.operands[0].is_temporary()) return std::nullopt;
    if (node.graph.op_name(node.id) == "max_pool" && rank_of(node) != 4) return std::nullopt;
    const ValueId inner = rewriter.temporary(node.operands[0].temporary).value;
    return open(rewriter, rewriter.forward(node.id, with_first(node, inner)));
  }

  Results add(ForwardRewriter& rewriter, const RewrittenNode& node) const {
    const Rewritten &left = node.operands[0], &right = node.operands[1];
    if (left.is_temporary() && right.is_temporary()) {
      const ValueId a = close(rewriter, left), b = close(rewriter, right);
      return open(rewriter, rewriter.forward(node.id, {a, b}));
    }
    if (right.is_temporary())
      return plain(rewriter.forward(node.id, {left.value, close(rewriter, right)}));
    if (!left.is_temporary()) return std::nullopt;
    if (rewriter.graph().constant_of(right.value)) {  // a bias
      const ValueId inner = rewriter.temporary(left.temporary).value;
      return open(rewriter, rewriter.forward(node.id, {inner, right.value}));
    }
    return plain(rewriter.forward(node.id, {close(rewriter, left), right.value}));
  }

  // The left operand decides; a right operand in a section is read without closing it.
  Results multiply(ForwardRewriter& rewriter, const RewrittenNode& node) const {
    const Rewritten &left = node.operands[0], &right = node.operands[1];
    if (left.is_temporary())
      return open(rewriter, rewriter.forward(node.id, {close(rewriter, left), right.value}));
    if (!right.is_temporary()) return std::nullopt;
    if (options_.multiply_right) {
      return open(rewriter, rewriter.forward(node.id, {left.value, close(rewriter, right)}));
    }
    throw Error("quantize-partition: a product has its 8-bit section on the right",
                ErrorKind::Unsupported)
        .at(node.graph.location(node.id))
        .expected("a left operand from a section, or none from one")
        .got("right operand '", node.graph.value(node.graph.node(node.id).operands[1]).name, "'")
        .hint(
            "--set quantize-partition.multiply-right=true allows it, as the reference does since "
            "2023");
  }

  // A pool over the whole image. Closes its operand even outside of a section.
  Results global_average(ForwardRewriter& rewriter, const RewrittenNode& node) const {
    if (!relay_quantize::is_global_average(node.graph, node.id)) return std::nullopt;
    Rewritten x = node.operands[0];
    if (!x.is_temporary()) x = rewriter.make_temporary(x.value);
    return plain(rewriter.forward(node.id, {close(rewriter, x)}));
  }

  QuantizePartitionOptions options_;
  ForwardRules rules_;
};

}  // namespace

/// Partitions a network into sections that later stages may compute in 8-bit integers: a
/// convolution and the biases, clips, ReLUs and max-pools after it. A value that leaves its section
/// passes through cast_hint and stop_fusion, which are identities so far. A convolution's bias
/// becomes an add. The rules, including one such pair per reader, are those of TVM's
/// QuantizePartition of 2021; options improve on them.
Graph quantize_partition(Graph graph, const PassOptions& options) {
  return QuantizePartitioner(options.quantize_partition)
      .run(relay_quantize::with_biases_apart(std::move(graph)));
}

}  // namespace tenon::passes
