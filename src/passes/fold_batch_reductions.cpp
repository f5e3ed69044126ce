// Turns a batched matrix product that is then reduced over its batch into one product with a longer
// reduction: the weight-gradient GEMM over the batch.
#include "base/error.h"
#include "expr/fused_groups.h"
#include "passes/definition/pass.h"
#include "passes/rewrite/facts.h"

#include <algorithm>

namespace tenon::passes {
namespace {

using namespace rewrite;

constexpr std::size_t kMostAxes = 8;  // there are that many letters for them

// Returns whether the reduction covers all batch axes and no matrix axis.
bool sums_stack(const Match& match) {
  const TensorType *x = match.type("x"), *y = match.type("y");
  if (!x || !y || (x->dtype != DType::F32 && x->dtype != DType::F64)) return false;
  const std::size_t rank = x->rank();
  if (rank < 3 || rank > kMostAxes || y->rank() != rank) return false;
  const auto axes = counted_axes(match.dims("a"), rank);
  if (!axes || axes->size() != rank - 2) return false;
  const bool is_leading = std::ranges::all_of(
      *axes, [&](std::int64_t axis) { return axis < static_cast<std::int64_t>(rank) - 2; });
  if (!is_leading) return match.refuse("the reduction has axes besides the stack");
  if (!std::equal(x->dims.begin(), x->dims.end() - 2, y->dims.begin()))
    return match.refuse("the operands are stacks of different extents");
  return true;
}

// An operand and the letters of its axes; a transposed operand is read without its transpose.
struct Stack {
  ValueId value;
  std::string letters;
};
Stack stack_of(const Match& match, const char* name, std::string letters) {
  const ValueId value = match.value(name);
  const NodeId producer = match.graph().value(value).producer;
  const std::size_t rank = match.type(name)->rank();
  if (!producer) return {value, std::move(letters)};
  const Node& node = match.graph().node(producer);
  const AttrValue* perm = node.op->name == "transpose" ? node.attrs.find("perm") : nullptr;
  const auto order = perm ? counted_axes(std::get<Dims>(*perm), rank) : std::nullopt;
  if (!order || order->size() != rank) return {value, std::move(letters)};
  for (std::size_t k = 0; k < rank; ++k) {
    const std::size_t expected = k + 2 < rank ? k : 2 * rank - 3 - k;
    if ((*order)[k] != static_cast<std::int64_t>(expected)) return {value, std::move(letters)};
  }
  return {node.operands[0], {letters[1], letters[0]}};
}

ValueId summed(const Match& match) {
  const Stack x = stack_of(match, "x", "ik"), y = stack_of(match, "y", "kj");
  const std::string stack = std::string("abcdefgh").substr(0, match.type("x")->rank() - 2);
  return match.make("einsum", {x.value, y.value},
                    {{"equation", concat(stack, x.letters, ",", stack, y.letters, "->ij")}});
}

const RuleSet& rules() {
  static const RuleSet set(
      std::vector<Rule>{{"reduce_sum(p: matmul(x, y)) {axes = a, keep_axes = false}", summed,
                         read_once("p") && Condition(sums_stack)}});
  return set;
}

}  // namespace

/// Folds a reduction over the batch of a matrix product into the product's reduction dimension.
/// Avoids storing all products, and gives the reduced product an epilogue.
Graph fold_batch_reductions(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies)
      body = fold_batch_reductions(std::move(body), options);
  }
  rewrite::apply(graph, rules(), "fold-batch-reductions", options);
  return graph;
}

}  // namespace tenon::passes
