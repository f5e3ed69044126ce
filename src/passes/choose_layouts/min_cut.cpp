// Dinic's maximum-flow algorithm: pushes along all shortest paths of a phase until no path is left.
// Iterative, because a path can be as long as the graph.
#include "passes/choose_layouts/min_cut.h"

#include <algorithm>

namespace tenon::passes::layouts {

void MinCut::add_arc(Index from, Index to, std::int64_t capacity) {
  if (from == to || capacity <= 0 || from == sink || to == source) return;
  arcs_.push_back({to, heads_[from], capacity});
  heads_[from] = static_cast<Index>(arcs_.size() - 1);
  arcs_.push_back({from, heads_[to], 0});
  heads_[to] = static_cast<Index>(arcs_.size() - 1);
}

bool MinCut::find_levels() {
  level_.assign(heads_.size(), kNone);
  level_[source] = 0;
  std::vector<Index> reached{source};
  for (std::size_t k = 0; k < reached.size(); ++k) {
    const Index at = reached[k];
    if (at == sink) return true;
    for (Index arc = heads_[at]; arc != kNone; arc = arcs_[arc].next) {
      const Index to = arcs_[arc].to;
      if (arcs_[arc].left == 0 || level_[to] != kNone) continue;
      level_[to] = level_[at] + 1;
      reached.push_back(to);
    }
  }
  return false;
}

// Pushes the bottleneck of the path and truncates the path before its first saturated arc.
void MinCut::augment(std::vector<Index>& path) {
  std::int64_t amount = infinite;
  for (const Index arc : path) amount = std::min(amount, arcs_[arc].left);
  std::size_t first_full = path.size();
  for (std::size_t k = path.size(); k-- > 0;) {
    arcs_[path[k]].left -= amount;
    arcs_[path[k] ^ 1].left += amount;
    if (arcs_[path[k]].left == 0) first_full = k;
  }
  path.resize(first_full);
}

void MinCut::push_along_levels() {
  current_ = heads_;
  std::vector<Index> path;
  while (true) {
    const Index at = path.empty() ? source : arcs_[path.back()].to;
    if (at == sink) {
      augment(path);
      continue;
    }
    Index& arc = current_[at];
    while (arc != kNone && (arcs_[arc].left == 0 || level_[arcs_[arc].to] != level_[at] + 1)) {
      arc = arcs_[arc].next;
    }
    if (arc != kNone) {
      path.push_back(arc);
    } else if (path.empty()) {
      return;
    } else {
      const Index before = arcs_[path.back() ^ 1].to;
      current_[before] = arcs_[current_[before]].next;
      path.pop_back();
    }
  }
}

std::vector<bool> MinCut::solve() {
  while (find_levels()) push_along_levels();
  // Nodes that can still reach the sink in the residual graph are on its side.
  std::vector<bool> is_sinks(heads_.size(), false);
  is_sinks[sink] = true;
  std::vector<Index> reached{sink};
  while (!reached.empty()) {
    const Index at = reached.back();
    reached.pop_back();
    for (Index arc = heads_[at]; arc != kNone; arc = arcs_[arc].next) {
      const Index from = arcs_[arc].to;
      if (is_sinks[from] || arcs_[arc ^ 1].left == 0) continue;
      is_sinks[from] = true;
      reached.push_back(from);
    }
  }
  return is_sinks;
}

}  // namespace tenon::passes::layouts
