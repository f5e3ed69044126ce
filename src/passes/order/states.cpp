#include "passes/order/states.h"

#include "base/error.h"
#include "base/ids.h"
#include "memory/liveness.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace tenon::passes::ordering {
namespace {

constexpr std::uint32_t kNone = static_cast<std::uint32_t>(-1);

class Readers {
 public:
  Readers(const Graph& graph, memory::Problem& problem)
      : graph_(graph), problem_(problem), item_of_(graph.node_id_bound(), kNone) {
    std::uint32_t count = 0;
    for (const NodeId id : memory::running_nodes(graph)) item_of_[id] = count++;
    followers_.resize(count);
    const std::vector<std::uint32_t> makers = problem.makers();
    for (std::uint32_t item = 0; item < count; ++item) {
      for (const std::uint32_t value : problem.items[item].reads)
        followers_[makers[value]].push_back(item);
    }
  }

  void put_first(const Graph::State& state) {
    const ValueId now = graph_.inputs()[state.input], next = graph_.outputs()[state.output];
    const NodeId producer = graph_.value(next).producer;
    const std::uint32_t maker = producer ? item_of_[producer] : kNone;
    if (maker == kNone) return;
    std::vector<std::uint32_t> readers;
    for (const NodeId reader : graph_.readers(now)) {
      const std::uint32_t item = item_of_[reader];
      if (item != maker && std::ranges::find(readers, item) == readers.end())
        readers.push_back(item);
    }
    if (leads_to(maker, readers)) return;
    for (const std::uint32_t reader : readers) {
      memory::add_order_constraint(problem_, reader, maker);
      followers_[reader].push_back(maker);
    }
    std::size_t position = 0;  // among the present results
    for (const ValueId result : graph_.node(producer).results) {
      if (!result) continue;
      if (result == next) problem_.values[problem_.items[maker].makes[position]].bytes = 0;
      ++position;
    }
  }

  // Topological sort that keeps the given order where dependencies allow it.
  void sort() {
    std::vector<std::size_t> missing(followers_.size(), 0);
    for (const std::vector<std::uint32_t>& list : followers_) {
      for (const std::uint32_t follower : list) ++missing[follower];
    }
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t item = 0; item < missing.size(); ++item) {
      if (missing[item] == 0) ready.push(item);
    }
    std::vector<memory::Item> sorted;
    while (!ready.empty()) {
      const std::uint32_t item = ready.top();
      ready.pop();
      sorted.push_back(std::move(problem_.items[item]));
      for (const std::uint32_t follower : followers_[item]) {
        if (--missing[follower] == 0) ready.push(follower);
      }
    }
    TENON_ASSERT(sorted.size() == problem_.items.size(), "nothing waits for itself");
    problem_.items = std::move(sorted);
  }

 private:
  bool leads_to(std::uint32_t from, const std::vector<std::uint32_t>& ends) const {
    std::vector<char> is_seen(followers_.size(), 0);
    std::vector<std::uint32_t> work{from};
    while (!work.empty()) {
      const std::uint32_t item = work.back();
      work.pop_back();
      if (std::ranges::find(ends, item) != ends.end()) return true;
      for (const std::uint32_t follower : followers_[item]) {
        if (!std::exchange(is_seen[follower], 1)) work.push_back(follower);
      }
    }
    return false;
  }

  const Graph& graph_;
  memory::Problem& problem_;
  IdMap<NodeId, std::uint32_t> item_of_;
  std::vector<std::vector<std::uint32_t>> followers_;  // by item
};

}  // namespace

void read_states_first(const Graph& graph, memory::Problem& problem) {
  if (std::ranges::none_of(graph.states, &Graph::State::may_overwrite)) return;
  Readers readers(graph, problem);
  for (const Graph::State& state : graph.states) {
    if (state.may_overwrite) readers.put_first(state);
  }
  readers.sort();
}

}  // namespace tenon::passes::ordering
