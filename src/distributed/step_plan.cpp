#include "distributed/step_plan.h"

#include "distributed/stages.h"
#include "driver/pipeline.h"
#include "memory/lifetimes.h"
#include "memory/order.h"
#include "planning/problem_of.h"

#include <algorithm>
#include <map>
#include <set>

namespace tenon::distributed {
namespace {

constexpr double kBucketSizes[] = {1 << 20, 4 << 20, 16 << 20, 64 << 20};

double seconds_of(const memory::Item& item, const Cluster& cluster) {
  return item.alternatives.front().seconds + cluster.start_s;
}

}  // namespace

StepCosts::StepCosts(const Graph& model, passes::TrainOptions options, const Cluster& cluster) {
  // any number above one, so that the graph contains the reductions; it does not affect the cost
  options.micro_batches = 2;
  options.state_ranks = 1;
  const passes::StatefulGraph step = passes::train(model, options);
  std::set<std::string> parameters;
  for (NodeId id : model.nodes_in_order()) {
    for (ValueId value : model.node(id).results) {
      if (value && model.constant_of(value)) parameters.insert(model.value(value).name);
    }
  }
  for (const passes::State& state : step.states) {
    const auto bytes = static_cast<double>(state.initial.size()) *
                       static_cast<double>(info(state.initial.dtype()).storage_bytes);
    (parameters.contains(state.name) ? parameter_bytes : other_state_bytes) += bytes;
  }
  const std::vector<StepStage> stages = cut_at_collectives(step.graph);
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const Graph graph = driver::run_pipeline(stages[k].graph, {});
    const memory::Problem problem = planning::problem_of(graph, cluster.device);
    double at = 0;
    std::map<std::string, double> made;
    for (const memory::Item& item : problem.items) {
      at += seconds_of(item, cluster);
      for (std::uint32_t value : item.makes) made[problem.values[value].name] = at;
    }
    if (k > 0) {
      const double starts = cluster.start_s * static_cast<double>(problem.items.size());
      update_start_s += starts;
      update_s += at - starts;
      continue;
    }
    compute_s = at;
    const memory::Problem ordered = memory::reordered(problem);
    arena_bytes =
        static_cast<double>(memory::planned(ordered, memory::plain_events(ordered)).arena_bytes);
    for (std::size_t output = 0; output < stages[0].outputs.size(); ++output) {
      const Value& value = step.graph.value(stages[0].outputs[output]);
      const auto bytes = static_cast<double>(byte_count(value.type.tensor()).constant());
      const auto found = made.find(graph.value(graph.outputs()[output]).name);
      gradients.push_back({bytes, found == made.end() ? at : found->second});
      gradient_bytes += bytes;
    }
    std::ranges::stable_sort(gradients, {}, &Gradient::made_at_s);
  }
}

StepPlan plan_step(const StepCosts& costs, const Cluster& cluster, std::int64_t rank_count,
                   bool splits_states, double bucket_bytes) {
  StepPlan plan;
  plan.ranks = rank_count;
  plan.splits_states = splits_states && rank_count > 1;
  plan.bucket_bytes = bucket_bytes;
  plan.compute_s = costs.compute_s;
  plan.link_bytes.assign(cluster.tiers.size(), 0);
  const auto add = [&](double bytes, double times) {
    const Cluster::Exchange one = cluster.exchange(rank_count, bytes);
    for (std::size_t k = 0; k < one.bytes.size(); ++k) plan.link_bytes[k] += times * one.bytes[k];
    plan.communication_s += times * one.seconds;
    return times * one.seconds;
  };
  const auto share = static_cast<double>(plan.splits_states ? rank_count : 1);
  double end = costs.compute_s;
  if (rank_count > 1) {
    // Buckets are sent one after another, each after its last gradient. With reduce-scatter
    // communication takes half the time, and parameters are gathered after the update instead.
    double bucket = 0, link_free = 0;
    for (std::size_t k = 0; k < costs.gradients.size(); ++k) {
      bucket += costs.gradients[k].bytes;
      if (bucket < bucket_bytes && k + 1 < costs.gradients.size()) continue;
      link_free = std::max(link_free, costs.gradients[k].made_at_s) +
                  add(bucket, plan.splits_states ? 1 : 2);
      bucket = 0;
    }
    end = std::max(end, link_free);
  }
  const double update_s = costs.update_start_s + costs.update_s / share;
  end += update_s;
  if (plan.splits_states) end += add(costs.parameter_bytes, 1);
  if (cluster.ranks_at_once > 0) {  // no overlap
    end = (costs.compute_s + update_s + plan.communication_s + costs.between_s) *
          std::max(1.0, static_cast<double>(rank_count) / cluster.ranks_at_once);
    if (rank_count > 1) end += costs.meeting_s;  // a waiting rank leaves its core to another one
    plan.waited_s = plan.communication_s;
  } else {
    plan.waited_s = end - costs.compute_s - update_s;
  }
  plan.step_s = end;
  // Every state is double-buffered; a rank's piece of a parameter is inside the whole one.
  plan.bytes_per_rank = costs.arena_bytes + costs.gradient_bytes + 2 * costs.parameter_bytes +
                        2 * costs.other_state_bytes / share;
  const auto memory = static_cast<double>(cluster.device.memory_bytes);
  plan.fits = memory == 0 || plan.bytes_per_rank <= memory;
  return plan;
}

StepPlan best_plan(const StepCosts& costs, const Cluster& cluster, std::int64_t rank_count) {
  StepPlan best;
  bool has_any = false;
  for (const bool splits : {false, true}) {
    if (splits && rank_count == 1) continue;
    for (const double bucket : kBucketSizes) {
      const StepPlan plan = plan_step(costs, cluster, rank_count, splits, bucket);
      const bool is_better =
          !has_any || (plan.fits && !best.fits) ||
          (plan.fits == best.fits &&
           (plan.fits ? plan.step_s < best.step_s : plan.bytes_per_rank < best.bytes_per_rank));
      if (is_better) best = plan;
      has_any = true;
    }
  }
  return best;
}

}  // namespace tenon::distributed
