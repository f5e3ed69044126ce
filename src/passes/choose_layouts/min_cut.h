#pragma once

#include <cstdint>
#include <vector>

namespace tenon::passes::layouts {

/// Minimum s-t cut (Dinic): assigns each node to the source or the sink side such that the arcs
/// from the source side to the sink side have the least total capacity.
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
  /// Adds an arc that costs `capacity` if `from` ends on the source side and `to` on the sink side.
  /// Skips self-loops and arcs of capacity zero.
  void add_arc(Index from, Index to, std::int64_t capacity);
  /// Returns the nodes on the sink side of a minimum cut; the one with the fewest nodes on that
  /// side.
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

  std::vector<Arc> arcs_;  // the reverse of arc k is arc k ^ 1
  std::vector<Index> heads_, level_, current_;
};

}  // namespace tenon::passes::layouts
