#pragma once

#include <cstdint>
#include <vector>

namespace tenon::layouts {

/// Two sides for each node such that the arcs from the source's side to the sink's cost least.
class MinCut {
 public:
  using Index = std::uint32_t;
  static constexpr Index source = 0, sink = 1;
  static constexpr std::int64_t infinite = std::int64_t{1} << 60;

  MinCut() : heads_(2, kNone) {}
  Index add_node() {
    heads_.push_back(kNone);
    return static_cast<Index>(heads_.size() - 1);
  }
  /// Costs `capacity` where `from` is on the source's side and `to` on the sink's. Arcs between
  /// equal nodes and arcs that cost nothing are left out.
  void add_arc(Index from, Index to, std::int64_t capacity);
  /// Which nodes are on the sink's side in a cheapest cut: of all of them the one with the fewest.
  std::vector<bool> solve();

 private:
  static constexpr Index kNone = 0xffffffff;
  struct Arc {
    Index to = 0, next = kNone;
    std::int64_t left = 0;
  };
  bool find_levels();
  void push_along_levels();
  void augment(std::vector<Index>& path);

  std::vector<Arc> arcs_;  // an arc's reverse is its index ^ 1
  std::vector<Index> heads_, level_, current_;
};

}  // namespace tenon::layouts
