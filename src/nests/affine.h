#pragma once

#include "nests/loop_nest.h"

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tenon::nests {

/// An integer that grows evenly with loops.
struct Affine {
  /// by loop; none is 0
  std::map<std::size_t, std::int64_t> steps;
  std::int64_t start = 0;

  bool operator==(const Affine&) const = default;
};

/// Nothing where the number is not of that kind.
std::optional<Affine> affine_of(const Scalar& scalar);
Scalar scalar_of(const Affine& affine);

/// Rewrites every number of a block, from the inside out.
class Rewriting {
 public:
  using Change = std::function<Scalar(ScalarNode node)>;
  explicit Rewriting(Change change) : change_(std::move(change)) {}
  void apply(Block& block);

 private:
  Scalar apply(const Scalar& scalar);

  Change change_;
  std::unordered_map<const ScalarNode*, Scalar> done_;
  std::vector<Scalar> kept_;  // so that no two nodes ever share an address
};

/// Calls `visit` for every statement, loops before what stands in them.
void for_each_statement(Block& block, const std::function<void(Statement&)>& visit);

}  // namespace tenon::nests
