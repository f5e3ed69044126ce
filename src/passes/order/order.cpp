#include "base/error.h"
#include "base/text.h"
#include "expr/fused_groups.h"
#include "memory/liveness.h"
#include "memory/window.h"
#include "passes/definition/pass.h"
#include "passes/grouping.h"
#include "passes/order/megengine.h"
#include "passes/order/states.h"

namespace tenon::passes {
namespace {

using memory::Sequence;
using memory::Tasks;

struct OrderChoice {
  Sequence sequence;
  std::int64_t peak = 0;
  const char* why = nullptr;  // null for the given order
};

// Returns the given order unless another one has a lower peak.
OrderChoice lowest_peak(const Tasks& tasks) {
  OrderChoice best;
  for (std::uint32_t task = 0; task < tasks.size(); ++task) best.sequence.push_back(task);
  best.peak = memory::peak_bytes(tasks, best.sequence);
  const auto consider = [&](Sequence sequence, const char* why) {
    TENON_ASSERT(sequence.size() == tasks.size(), "an order has every node");
    const std::int64_t peak = memory::peak_bytes(tasks, sequence);
    if (peak < best.peak) best = {std::move(sequence), peak, why};
  };
  consider(memory::least_growth(tasks), "what leaves least alive comes first");
  consider(memory::least_growth_backwards(tasks), "what asks least of those before it comes last");
  consider(memory::deepest_need_first(tasks), "nodes with the largest temporary memory run first");
  if (!best.sequence.empty()) {
    consider(memory::with_best_windows(tasks, best.sequence),
             "no other order near the peak lowers it");
  }
  return best;
}

// Places constants before their first reader.
Grouping singles(const Graph& graph, const Sequence& sequence) {
  const std::vector<NodeId> nodes = memory::running_nodes(graph);
  Grouping order;
  IdMap<NodeId, std::uint8_t> is_placed(graph.node_id_bound(), 0);
  const auto place = [&](NodeId id) {
    if (is_placed[id]) return;
    is_placed[id] = 1;
    order.groups.push_back({{id}, {}});
  };
  for (std::uint32_t task : sequence) {
    for (ValueId operand : graph.node(nodes[task]).operands) {
      if (operand && graph.constant_of(operand)) place(graph.value(operand).producer);
    }
    place(nodes[task]);
  }
  for (NodeId id : graph.nodes_in_order()) place(id);  // constants that are outputs
  return order;
}

Graph ordered(Graph graph, const PassOptions& options) {
  for (NodeId id : graph.nodes_in_order()) {
    if (graph.node(id).bodies.empty() || is_fused_group(graph, id)) continue;
    for (Graph& body : graph.mutable_node(id).bodies) body = ordered(std::move(body), options);
  }
  if (options.order_mode == "megengine") {
    Grouping order;
    for (NodeId id : ordering::megengine_order(graph)) order.groups.push_back({{id}, {}});
    return with_groups(std::move(graph), order, options.remarks);
  }
  memory::Problem problem = memory::liveness_problem(graph);
  ordering::read_states_first(graph, problem);
  const Tasks tasks(problem);
  Sequence given;
  for (std::uint32_t task = 0; task < tasks.size(); ++task) given.push_back(task);
  const OrderChoice choice = lowest_peak(tasks);
  if (options.remarks && !graph.outputs().empty()) {
    const std::string peak = format_bytes(static_cast<std::uint64_t>(choice.peak));
    const std::string before =
        format_bytes(static_cast<std::uint64_t>(memory::peak_bytes(tasks, given)));
    options.remarks->say(graph.value(graph.outputs().front()).name, "order",
                         choice.why ? concat("nodes run in an order in which ", choice.why, ": ",
                                             peak, " alive at the peak, ", before, " as given")
                                    : concat("no order was found that keeps less than the ", peak,
                                             " alive at the peak as given"));
  }
  Sequence numbers;  // of the nodes in graph order
  for (const std::uint32_t task : choice.sequence) numbers.push_back(problem.items[task].number);
  if (numbers == given) return graph;
  const Grouping order = singles(graph, numbers);
  return with_groups(std::move(graph), order, options.remarks);
}

}  // namespace

/// Memory-aware scheduling: orders nodes by the lowest live peak of several heuristics. Never
/// returns an order with a higher peak than the given one.
Graph order(Graph graph, const PassOptions& options) { return ordered(std::move(graph), options); }

}  // namespace tenon::passes
