#include "passes/fuse/clusters.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::passes::fusing {
namespace {

constexpr std::uint64_t kGap = std::uint64_t{1} << 32;
// Edges visited before a merge is given up. Close clusters need far fewer.
constexpr std::size_t kSearchLimit = 1024;
// In a tangled graph most searches reach that limit. After this many edges per node, searches use a
// smaller limit, which keeps the total time linear in the size of the graph.
constexpr std::size_t kEdgesPerNode = 32, kEdgesOfSmallGraphs = 1 << 20;
constexpr std::size_t kTangledSearchLimit = 32;

}  // namespace

Clusters::Clusters(const Graph& graph)
    : graph_(graph),
      positions_(graph.node_id_bound()),
      owners_(graph.node_id_bound()),
      makers_(graph.value_id_bound()) {
  for (NodeId id : graph.nodes_in_order()) {
    const ClusterId cluster(members_.size());
    positions_[id] = cluster.index();
    own(cluster, id);
    members_.push_back({id});
    const ClusterId previous = members_.size() > 1 ? ClusterId(members_.size() - 2) : ClusterId{};
    places_.push_back({(cluster.index() + 1) * kGap, previous, {}});
    if (previous) places_[previous.index()].next = cluster;
    if (!first_) first_ = cluster;
  }
  seen_ahead_.resize(members_.size());
  seen_before_.resize(members_.size());
}

void Clusters::own(ClusterId cluster, NodeId node) {
  owners_[node] = cluster;
  for (ValueId result : graph_.node(node).results) {
    if (result) makers_[result] = cluster;
  }
}

template <class Visit>
bool Clusters::for_each_neighbour(ClusterId cluster, bool forwards, const Visit& visit) const {
  for (NodeId id : members_[cluster.index()]) {
    const Node& node = graph_.node(id);
    if (forwards) {
      for (ValueId result : node.results) {
        if (!result) continue;
        for (NodeId reader : graph_.readers(result)) {
          if (!visit(of(reader))) return false;
        }
      }
    } else {
      for (ValueId operand : node.operands) {
        const ClusterId made_by = operand ? maker(operand) : ClusterId{};
        if (made_by && !visit(made_by)) return false;
      }
    }
  }
  return true;
}

/// Incremental search for the clusters between two that depend on the first (forwards) or that the
/// second depends on (backwards).
class Clusters::Search {
 public:
  Search(Clusters& clusters, ClusterId from, ClusterId to, bool forwards, std::size_t limit)
      : clusters_(clusters),
        seen_(forwards ? clusters.seen_ahead_ : clusters.seen_before_),
        from_(from),
        to_(to),
        forwards_(forwards),
        limit_(limit) {}

  enum class State : std::uint8_t { Open, Done, MeetsTheOther, GaveUp };

  State expand() {
    if (next_ > found_.size()) return state_ = State::Done;
    const ClusterId at = next_ == 0 ? from_ : found_[next_ - 1];
    ++next_;
    const bool is_finished = clusters_.for_each_neighbour(at, forwards_, [&](ClusterId near) {
      if (++visited_ > limit_) {
        state_ = State::GaveUp;
        return false;
      }
      if (near == at || near == from_) return true;
      if (near == to_) {
        if (at == from_) return true;  // the edge that the merge contracts
        state_ = State::MeetsTheOther;
        return false;
      }
      const bool is_between = forwards_ ? clusters_.label(near) < clusters_.label(to_)
                                        : clusters_.label(near) > clusters_.label(to_);
      std::uint32_t& seen = seen_[near.index()];
      if (is_between && seen != clusters_.search_) {
        seen = clusters_.search_;
        found_.push_back(near);
      }
      return true;
    });
    if (is_finished && next_ > found_.size()) state_ = State::Done;
    return state_;
  }

  std::size_t visited() const { return visited_; }

  std::vector<ClusterId> found_in_order() const {
    std::vector<ClusterId> sorted = found_;
    std::ranges::sort(sorted, {}, [&](ClusterId id) { return clusters_.label(id); });
    return sorted;
  }

 private:
  const Clusters& clusters_;
  std::vector<std::uint32_t>& seen_;
  ClusterId from_, to_;
  bool forwards_;
  State state_ = State::Open;
  std::vector<ClusterId> found_;
  std::size_t next_ = 0, visited_ = 0, limit_;
};

std::optional<ClusterId> Clusters::merge(ClusterId a, ClusterId b,
                                         const std::function<void()>& before) {
  if (a == b) return a;
  if (label(a) > label(b)) std::swap(a, b);
  // Either search, once it ends, has found all clusters that would have to run between the two.
  const bool is_tangled = visited_ > kEdgesOfSmallGraphs + kEdgesPerNode * members_.size();
  const std::size_t limit = is_tangled ? kTangledSearchLimit : kSearchLimit;
  if (++search_ == 0) {  // wrapped around: marks of earlier searches are invalid
    std::ranges::fill(seen_ahead_, 0U);
    std::ranges::fill(seen_before_, 0U);
    search_ = 1;
  }
  Search forwards(*this, a, b, true, limit), backwards(*this, b, a, false, limit);
  using State = Search::State;
  State ahead = State::Open, behind = State::Open;
  while (true) {
    if (ahead != State::GaveUp) ahead = forwards.expand();
    if (ahead == State::Done || ahead == State::MeetsTheOther) break;
    if (behind != State::GaveUp) behind = backwards.expand();
    if (behind == State::Done || behind == State::MeetsTheOther) break;
    if (ahead == State::GaveUp && behind == State::GaveUp) break;
  }
  visited_ += forwards.visited() + backwards.visited();
  if (ahead == State::GaveUp && behind == State::GaveUp) return std::nullopt;
  if (ahead == State::MeetsTheOther || behind == State::MeetsTheOther) return std::nullopt;
  if (before) before();
  if (ahead == State::Done) {
    // Successors of the first cluster move after the second.
    ClusterId last = b;
    for (ClusterId later : forwards.found_in_order()) {
      unlink(later);
      link_after(later, last);
      last = later;
    }
    unlink(a);
    return unite(b, a);
  }
  // Predecessors of the second cluster move before the first.
  for (ClusterId earlier : backwards.found_in_order()) {
    unlink(earlier);
    link_after(earlier, places_[a.index()].previous);
  }
  unlink(b);
  return unite(a, b);
}

// Keeps the id of the larger cluster, at the position of `kept`.
ClusterId Clusters::unite(ClusterId kept, ClusterId gone) {
  ClusterId root = kept, leaf = gone;
  if (members_[root.index()].size() < members_[leaf.index()].size()) std::swap(root, leaf);
  std::vector<NodeId>& nodes = members_[root.index()];
  const auto middle = static_cast<std::ptrdiff_t>(nodes.size());
  nodes.insert(nodes.end(), members_[leaf.index()].begin(), members_[leaf.index()].end());
  std::inplace_merge(nodes.begin(), nodes.begin() + middle, nodes.end(),
                     [&](NodeId x, NodeId y) { return positions_[x] < positions_[y]; });
  // Small-to-large merging: each node changes its owner at most a logarithmic number of times.
  for (NodeId id : members_[leaf.index()]) own(root, id);
  members_[leaf.index()] = {};
  if (root != kept) {
    places_[root.index()] = places_[kept.index()];
    const ListLink& place = places_[root.index()];
    (place.previous ? places_[place.previous.index()].next : first_) = root;
    if (place.next) places_[place.next.index()].previous = root;
  }
  return root;
}

void Clusters::unlink(ClusterId cluster) {
  const ListLink& place = places_[cluster.index()];
  (place.previous ? places_[place.previous.index()].next : first_) = place.next;
  if (place.next) places_[place.next.index()].previous = place.previous;
}

void Clusters::link_after(ClusterId cluster, ClusterId previous) {
  ListLink& place = places_[cluster.index()];
  place.previous = previous;
  place.next = previous ? places_[previous.index()].next : first_;
  (previous ? places_[previous.index()].next : first_) = cluster;
  if (place.next) places_[place.next.index()].previous = cluster;
  const std::uint64_t low = previous ? label(previous) : 0;
  const std::uint64_t high = place.next ? label(place.next) : low + 2 * kGap;
  if (high - low < 2) return make_room(previous);
  place.label = low + (high - low) / 2;
}

// Order maintenance: relabels clusters after a position, over a growing range until the gap is
// quadratic in the number of clusters, which makes insertions amortized cheap at any position.
void Clusters::make_room(ClusterId previous) {
  const std::uint64_t low = previous ? label(previous) : 0;
  const ClusterId first = previous ? places_[previous.index()].next : first_;
  std::uint64_t count = 1;  // the first is the new cluster, which has no label yet
  ClusterId behind = places_[first.index()].next;
  while (behind && label(behind) - low <= (count + 1) * (count + 1)) {
    behind = places_[behind.index()].next;
    ++count;
  }
  const std::uint64_t step = behind ? (label(behind) - low) / (count + 1) : kGap;
  std::uint64_t next_label = low + step;
  for (ClusterId at = first; at != behind; at = places_[at.index()].next, next_label += step) {
    places_[at.index()].label = next_label;
  }
}

std::vector<ClusterId> Clusters::in_order() const {
  std::vector<ClusterId> order;
  for (ClusterId at = first_; at; at = places_[at.index()].next) order.push_back(at);
  return order;
}

}  // namespace tenon::passes::fusing
