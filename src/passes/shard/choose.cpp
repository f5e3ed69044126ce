#include "passes/shard/choose.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/signature.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tenon::passes {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kStage_s = 5e-6;  // a value cut in two prevents fusion
constexpr int kSweeps = 6;
constexpr int kRounds = 3;
constexpr std::size_t kMaxClasses = 100;
// Weight of memory against time: a byte that every rank holds counts as if it were sent this often
// per step, because tensor parallelism is requested to save memory first.
constexpr double kWholeWeight = 500;

double bytes_of(const TensorType& type) { return static_cast<double>(byte_count(type).constant()); }

// States that are sharded together: a parameter and its optimizer state.
struct StateGroup {
  std::vector<ValueId> now, next;
  std::vector<Sharding> options;
  double bytes = 0;
  bool is_weight = false;  // of rank two or more
  std::string kind;        // equal for the same group of other layers
};

class Chooser {
 public:
  Chooser(const StatefulGraph& step, const ShardOptions& options)
      : step_(step), graph_(step.graph), options_(options) {
    find_strategies();
    find_groups();
    for (NodeId id : graph_.nodes_in_order()) order_.push_back(id);
    find_sums();
  }

  ShardPlan choose() {
    held_.assign(groups_.size(), Sharding::whole());
    settle();
    ShardPlan plain = plan();
    held_.assign(groups_.size(), std::nullopt);
    settle();
    improve();
    ShardPlan made = plan();
    made.plain_seconds = plain.seconds;
    return made;
  }

 private:
  using Wants = std::vector<std::pair<Sharding, int>>;  // number of readers by sharding

  void find_strategies() {
    std::map<std::string, std::shared_ptr<const Strategies>> known;
    for (NodeId id : graph_.nodes_in_order()) {
      const std::string signature = signature_of(graph_, id);
      auto& strategies = known[signature];
      if (!strategies || signature.empty())
        strategies = std::make_shared<const Strategies>(
            strategies_of(graph_, id, options_.tensor_ranks, options_.costs));
      all_[id] = strategies;
    }
  }

  void find_groups() {
    for (const State& state : step_.states) {
      const ValueId now = graph_.inputs()[state.input];
      StateGroup group;
      group.now = {now};
      group.next = {graph_.outputs()[state.output]};
      const TensorType& type = graph_.value(now).type.tensor();
      // The name of optimizer state starts with the parameter's name.
      const auto same = std::ranges::find_if(groups_, [&](const StateGroup& other) {
        const Value& first = graph_.value(other.now[0]);
        return first.type.tensor().dims == type.dims && state.name.starts_with(first.name + "/");
      });
      if (same != groups_.end()) {
        same->now.push_back(now);
        same->next.push_back(group.next[0]);
        same->bytes += bytes_of(type);
        continue;
      }
      group.bytes = bytes_of(type);
      group.is_weight = type.rank() >= 2;
      group.options.push_back(Sharding::whole());
      for (std::size_t axis = 0; axis < type.rank(); ++axis) {
        if (can_hold(type, Sharding::split(axis), options_.tensor_ranks))
          group.options.push_back(Sharding::split(axis));
      }
      group.kind = to_string(type);
      for (NodeId reader : graph_.readers(now)) group.kind += concat(" ", graph_.op_name(reader));
      groups_.push_back(std::move(group));
    }
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      for (ValueId now : groups_[k].now) group_of_[now] = k + 1;
    }
  }

  // Collects nodes that may produce partial sums; identical nodes of several layers share a kind.
  void find_sums() {
    std::map<std::string, std::size_t> kinds;
    for (NodeId id : order_) {
      const bool may_sum = std::ranges::any_of(all_[id]->candidates, [](const Strategy& candidate) {
        return std::ranges::any_of(candidate.results,
                                   [](const Sharding& s) { return s.is_partial(); });
      });
      if (!may_sum) continue;
      std::string kind = signature_of(graph_, id);
      for (ValueId result : graph_.node(id).results) {
        if (!result) continue;
        for (NodeId reader : graph_.readers(result)) kind += concat(" ", graph_.op_name(reader));
      }
      sum_of_[id] = kinds.emplace(std::move(kind), kinds.size() + 1).first->second;
    }
    is_late_.assign(kinds.size(), 0);
  }

  const TensorType& type_of(ValueId value) const { return graph_.value(value).type.tensor(); }
  bool is_constant(NodeId id) const {
    const Node& node = graph_.node(id);
    return node.results.size() == 1 && graph_.constant_of(node.results[0]) != nullptr;
  }

  double conversion(ValueId value, const Sharding& from, const Sharding& to) const {
    if (from == to) return 0;
    const Constant* constant = graph_.constant_of(value);
    const bool is_free = constant != nullptr && constant->kind() == Constant::Kind::Splat;
    if (is_free && to.is_split()) return 0;
    const double seconds = conversion_seconds(type_of(value), from, to, options_);
    // A weight that every rank gathers is held whole after all.
    const bool is_regained =
        to.is_whole() && group_of_[value] != 0 && groups_[group_of_[value] - 1].is_weight;
    return is_regained ? seconds + whole_seconds(bytes_of(type_of(value))) : seconds;
  }
  double whole_seconds(double bytes) const {
    return kWholeWeight * bytes / options_.costs.link_bytes_per_s;
  }

  // Cost of all conversions that readers need; a whole value is sliced instead of gathered again.
  double value_seconds(ValueId value, const Sharding& home, const Wants& wants) const {
    const bool has_whole = home.is_whole() || std::ranges::any_of(wants, [](const auto& want) {
                             return want.first.is_whole() && want.second > 0;
                           });
    double seconds = 0;
    for (const auto& [want, count] : wants) {
      if (count <= 0 || want == home) continue;
      double one = conversion(value, home, want);
      if (has_whole && want.is_split())
        one = std::min(one, conversion(value, Sharding::whole(), want));
      seconds += one;
    }
    return seconds;
  }

  static void want(Wants& wants, const Sharding& sharding, int count) {
    for (auto& [one, readers] : wants) {
      if (one == sharding) {
        readers += count;
        return;
      }
    }
    wants.emplace_back(sharding, count);
  }

  // Greedy assignment from the inputs on: each node takes the strategy that suits its operands; an
  // undecided state takes the sharding that its first reader prefers.
  void settle() {
    std::vector<std::optional<Sharding>> held = held_;
    home_ = IdMap<ValueId, Sharding>(graph_.value_id_bound());
    candidate_ = IdMap<NodeId, const Strategy*>(graph_.node_id_bound(), nullptr);
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      if (held[k])
        for (ValueId now : groups_[k].now) home_[now] = *held[k];
    }
    for (NodeId id : order_) {
      const Strategy* best = nullptr;
      double least = kNever;
      for (const Strategy& candidate : all_[id]->candidates) {
        const double seconds = reading_seconds(id, candidate, held);
        if (seconds < least) least = seconds, best = &candidate;
      }
      TENON_ASSERT(best != nullptr, "every node can be computed by all ranks");
      take(id, *best);
      for (std::size_t k = 0; k < best->operands.size(); ++k) {
        const ValueId operand = graph_.node(id).operands[k];
        const std::size_t group = operand ? group_of_[operand] : 0;
        if (group == 0 || held[group - 1] || best->operands[k].is_partial()) continue;
        if (best->operands[k].is_whole() && groups_[group - 1].is_weight) continue;
        held[group - 1] = best->operands[k];
        for (ValueId now : groups_[group - 1].now) home_[now] = best->operands[k];
      }
    }
    for (std::size_t k = 0; k < groups_.size(); ++k) held_[k] = held[k].value_or(Sharding::whole());
    find_wants();
    for (int sweep = 0; sweep < kSweeps && improve_nodes(); ++sweep) {
    }
  }

  double reading_seconds(NodeId id, const Strategy& candidate,
                         const std::vector<std::optional<Sharding>>& held) const {
    double seconds = candidate.seconds;
    const Node& node = graph_.node(id);
    // Splitting a whole value pays off only later, if at all: where it is gathered again.
    constexpr double kCut_s = 0.1;
    const auto is_whole = [](const Sharding& sharding) { return sharding.is_whole(); };
    if (std::ranges::all_of(candidate.operands, is_whole) && !candidate.is_plain())
      seconds += kCut_s;
    for (std::size_t k = 0; k < candidate.operands.size(); ++k) {
      const ValueId operand = node.operands[k];
      if (!operand || !graph_.value(operand).type.is_tensor()) continue;
      const std::size_t group = group_of_[operand];
      const Sharding& home = home_[operand];
      // Penalizes a weight that stays whole although it could be split, or that is gathered again.
      const bool is_undecided = group != 0 && !held[group - 1];
      const bool is_weight = group != 0 && groups_[group - 1].is_weight;
      const bool could_be_split = is_undecided || home.is_split();
      if (is_weight && could_be_split && candidate.operands[k].is_whole()) seconds += 1;
      if (is_undecided) {
        if (candidate.operands[k].is_partial()) return kNever;
        continue;
      }
      if (candidate.operands[k].is_partial() && !is_summed_late(operand)) return kNever;
      seconds += conversion(operand, home, candidate.operands[k]);
      const bool is_cut = !home.is_split() && candidate.operands[k].is_split() && group == 0 &&
                          graph_.constant_of(operand) == nullptr;
      if (is_cut) seconds += kCut_s;
    }
    return seconds;
  }

  // Returns whether readers receive a value's partial sums instead of the reduced value.
  bool is_summed_late(ValueId value) const {
    const NodeId maker = graph_.value(value).producer;
    return maker && sum_of_[maker] != 0 && is_late_[sum_of_[maker] - 1] != 0;
  }

  void take(NodeId id, const Strategy& candidate) {
    candidate_[id] = &candidate;
    const Node& node = graph_.node(id);
    for (std::size_t k = 0; k < node.results.size(); ++k) {
      if (node.results[k]) home_[node.results[k]] = candidate.results[k];
    }
  }

  void find_wants() {
    wants_ = IdMap<ValueId, Wants>(graph_.value_id_bound());
    for (NodeId id : order_) {
      const Node& node = graph_.node(id);
      for (std::size_t k = 0; k < node.operands.size(); ++k) {
        if (node.operands[k]) want(wants_[node.operands[k]], candidate_[id]->operands[k], 1);
      }
    }
    outputs_.assign(graph_.outputs().size(), Sharding::whole());
    for (const State& state : step_.states)
      outputs_[state.output] = held_[group_of_[graph_.inputs()[state.input]] - 1].value();
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      want(wants_[graph_.outputs()[k]], outputs_[k], 1);
  }

  // Cost affected by the strategy of a node: its own time, and conversions of its operands and
  // results.
  double seconds_around(NodeId id) const {
    const Node& node = graph_.node(id);
    double seconds = candidate_[id]->seconds;
    std::vector<ValueId> values;
    for (const auto* list : {&node.operands, &node.results}) {
      for (ValueId value : *list) {
        if (value && std::ranges::find(values, value) == values.end()) values.push_back(value);
      }
    }
    for (ValueId value : values) {
      if (graph_.value(value).type.is_tensor())
        seconds += value_seconds(value, home_[value], wants_[value]);
    }
    return seconds;
  }

  void retake(NodeId id, const Strategy& candidate) {
    const Node& node = graph_.node(id);
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      if (!node.operands[k]) continue;
      want(wants_[node.operands[k]], candidate_[id]->operands[k], -1);
      want(wants_[node.operands[k]], candidate.operands[k], 1);
    }
    take(id, candidate);
  }

  bool improve_nodes() {
    bool has_changed = false;
    const auto improve = [&](NodeId id) {
      if (all_[id]->candidates.size() < 2) return;
      const Strategy* best = candidate_[id];
      double least = seconds_around(id);
      for (const Strategy& candidate : all_[id]->candidates) {
        retake(id, candidate);
        const double seconds = seconds_around(id);
        if (seconds < least * (1 - 1e-9)) least = seconds, best = &candidate, has_changed = true;
      }
      retake(id, *best);
    };
    for (NodeId id : order_) improve(id);
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) improve(*id);
    return has_changed;
  }

  double total() const {
    double seconds = 0;
    for (NodeId id : order_) seconds += candidate_[id]->seconds;
    for (std::size_t k = 0; k < graph_.value_id_bound(); ++k) {
      const ValueId value(k);
      if (!wants_[value].empty() && graph_.value(value).type.is_tensor())
        seconds += value_seconds(value, home_[value], wants_[value]);
    }
    return seconds;
  }
  double weighed_total() const {
    double seconds = total();
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      if (groups_[k].is_weight && held_[k]->is_whole()) seconds += whole_seconds(groups_[k].bytes);
    }
    return seconds;
  }

  // Local search: changes one decision at a time for all identical layers together, another axis
  // for a parameter or a later reduction, and keeps improvements.
  void improve() {
    std::map<std::string, std::vector<std::size_t>> classes;
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      if (groups_[k].options.size() > 1) classes[groups_[k].kind].push_back(k);
    }
    double least = weighed_total();
    const auto gains = [&] {
      settle();
      const double seconds = weighed_total();
      if (!(seconds < least * (1 - 1e-9))) return false;
      least = seconds;
      return true;
    };
    for (int round = 0; round < kRounds; ++round) {
      bool has_gained = false;
      for (std::size_t k = 0; k < is_late_.size() && is_late_.size() <= kMaxClasses; ++k) {
        is_late_[k] ^= 1;
        if (gains()) {
          has_gained = true;
        } else {
          is_late_[k] ^= 1;
        }
      }
      for (const auto& [kind, members] : classes) {
        if (classes.size() > kMaxClasses) break;
        for (const Sharding& option : groups_[members[0]].options) {
          const std::vector<std::optional<Sharding>> before = held_;
          for (std::size_t k : members) held_[k] = option;
          if (held_ == before) continue;
          if (gains()) {
            has_gained = true;
          } else {
            held_ = before;
          }
        }
      }
      if (!has_gained) break;
    }
    settle();
  }

  ShardPlan plan() {
    ShardPlan plan{home_, candidate_, all_, outputs_, total(), 0, {}};
    for (NodeId id : order_) {
      if (!is_constant(id)) plan.why[id] = reason_of(id);
    }
    return plan;
  }

  static std::string microseconds(double seconds) {
    return concat(std::llround(seconds * 1e6), " us");
  }
  std::string description(NodeId id, const Strategy& candidate) const {
    const Node& node = graph_.node(id);
    if (candidate.is_plain()) return "every rank computes all of it";
    std::vector<std::string> words;
    for (std::size_t k = 0; k < candidate.operands.size(); ++k) {
      if (node.operands[k] && !candidate.operands[k].is_whole())
        words.push_back(concat("'", graph_.value(node.operands[k]).name, "' ",
                               to_string(candidate.operands[k])));
    }
    std::string text = words.empty() ? "each rank a part" : join(words, ", ");
    for (std::size_t k = 0; k < candidate.results.size(); ++k) {
      if (node.results[k])
        text += concat(k == 0 ? "; gives " : ", ", to_string(candidate.results[k]));
    }
    return text;
  }

  // Describes the chosen strategy, the runner-up, and the refusals.
  std::string reason_of(NodeId id) {
    const Strategy* taken = candidate_[id];
    const double seconds = seconds_around(id);
    const Strategy* next = nullptr;
    double least = kNever;
    for (const Strategy& candidate : all_[id]->candidates) {
      if (&candidate == taken) continue;
      retake(id, candidate);
      const double one = seconds_around(id);
      if (one < least) least = one, next = &candidate;
    }
    retake(id, *taken);
    std::string text = description(id, *taken);
    if (next != nullptr) {
      text +=
          concat(" (", microseconds(seconds), " including communication of operands and results; ",
                 description(id, *next), ": ", microseconds(least), ")");
    }
    const auto& refusals = all_[id]->refusals;
    if (taken->is_plain() && !refusals.empty()) {
      constexpr std::size_t kMost = 4;
      const auto end =
          refusals.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, refusals.size()));
      text += concat("; not split: ", join(std::vector<std::string>(refusals.begin(), end), "; "));
    }
    return text;
  }

  const StatefulGraph& step_;
  const Graph& graph_;
  const ShardOptions& options_;
  std::vector<NodeId> order_;
  IdMap<NodeId, std::shared_ptr<const Strategies>> all_;
  std::vector<StateGroup> groups_;
  // index plus one of the group that a state's current value belongs to; 0 otherwise
  IdMap<ValueId, std::size_t> group_of_;
  std::vector<std::optional<Sharding>> held_;  // by group
  // kind plus one among nodes that may produce partial sums; 0 otherwise
  IdMap<NodeId, std::size_t> sum_of_;
  std::vector<char> is_late_;  // by kind: readers receive partial sums
  IdMap<ValueId, Sharding> home_;
  IdMap<NodeId, const Strategy*> candidate_;
  IdMap<ValueId, Wants> wants_;
  std::vector<Sharding> outputs_;
};

}  // namespace

double conversion_seconds(const TensorType& type, const Sharding& from, const Sharding& to,
                          const ShardOptions& options) {
  if (from == to) return 0;
  if (to.is_partial() || !can_hold(type, to, options.tensor_ranks)) return kNever;
  const auto ranks = static_cast<double>(options.tensor_ranks);
  const double bytes = bytes_of(type);
  const double exchange =
      options.costs.link_latency_s + bytes * (ranks - 1) / ranks / options.costs.link_bytes_per_s;
  const double slice = bytes / ranks / options.costs.memory_bytes_per_s;
  if (from.is_whole()) return kStage_s + slice;
  if (from.is_split()) return kStage_s + exchange + (to.is_whole() ? 0 : kStage_s + slice);
  // Pieces of a reduce-scatter are contiguous; along other axes the whole sum is made first.
  return kStage_s + (to.is_split() && to.axis == 0 ? 1 : 2) * exchange;
}

ShardPlan choose_shardings(const StatefulGraph& step, const ShardOptions& options) {
  return Chooser(step, options).choose();
}

}  // namespace tenon::passes
