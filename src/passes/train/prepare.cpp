#include "base/error.h"
#include "ops/definition/registry.h"
#include "passes/train/step_builder.h"

namespace tenon::passes::training {
namespace {

constexpr double kUsualRatio = 0.5;

// The statistics that a batch norm reads are states already.
std::optional<std::size_t> state_of(const Draft& draft, ValueId value) {
  for (std::size_t k = 0; k < draft.states.size(); ++k) {
    if (draft.states[k].now == value) return k;
  }
  return std::nullopt;
}

void train_batch_norm(Draft& draft, NodeId id) {
  Graph& graph = draft.graph;
  const Node node = graph.node(id);
  const auto mean = state_of(draft, node.operands[*node.op->operand_index("mean")]);
  const auto variance = state_of(draft, node.operands[*node.op->operand_index("variance")]);
  if (!mean || !variance) return;  // leaves computed statistics unchanged
  Graph::NewNode made{&find_op("batch_norm_training"),
                      node.operands,
                      node.attrs,
                      {},
                      {"", "", "", "", ""},
                      node.name};
  const std::vector<ValueId> results = graph.node(graph.add_node(std::move(made), id)).results;
  graph.set_type(results[0], graph.value(node.results[0]).type);
  graph.replace_uses(node.results[0], results[0]);
  graph.swap_names(node.results[0], results[0]);
  graph.erase(id);
  // A layer that is used twice updates its statistics by its last use.
  draft.states[*mean].next = results[1];
  draft.states[*variance].next = results[2];
}

void train_dropout(Graph& graph, NodeId id, ValueId step, std::int64_t seed) {
  const Node node = graph.node(id);
  double ratio = kUsualRatio;
  if (node.operands.size() > 1 && node.operands[1]) {
    const Constant* given = graph.constant_of(node.operands[1]);
    if (!given) {
      throw Error("cannot train: the ratio of a dropout is only known at run time",
                  ErrorKind::Unsupported)
          .at(graph.location(id));
    }
    ratio = given->materialise().real_at(0);
  }
  const bool has_mask = node.results.size() > 1 && node.results[1];
  if (has_mask && (!graph.readers(node.results[1]).empty() || graph.is_output(node.results[1]))) {
    throw Error("cannot train: the mask of a dropout is read", ErrorKind::Unsupported)
        .at(graph.location(id));
  }
  Graph::NewNode made{
      &find_op("dropout_training"), {node.operands[0], step}, {}, {}, {""}, node.name};
  made.attrs.set("ratio", ratio);
  made.attrs.set("seed", Dim(seed));
  const ValueId result = graph.node(graph.add_node(std::move(made), id)).results.front();
  graph.replace_uses(node.results[0], result);
  graph.swap_names(node.results[0], result);
  graph.erase(id);
}

}  // namespace

void prepare_nodes(Draft& draft, std::size_t step, const TrainOptions& options) {
  Graph& graph = draft.graph;
  ValueId key = options.micro_batches > 1 ? ValueId{} : draft.states[step].now;
  std::int64_t dropouts = 0;
  for (NodeId id : graph.nodes_in_order()) {
    const std::string_view op = graph.op_name(id);
    if (op == "batch_norm") {  // op-name: the op that has another form in training
      train_batch_norm(draft, id);
    } else if (op == "dropout") {  // op-name: likewise
      if (!key) key = graph.add_input(kKey, TensorType{DType::I64, {}, {}});
      train_dropout(graph, id, key,
                    options.seed * 1000003 + dropouts++);  // a separate mask for each dropout
    }
  }
}

}  // namespace tenon::passes::training
