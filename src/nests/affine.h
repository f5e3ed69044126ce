#pragma once

#include "nests/loop_nest.h"

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tenon::nests {

/// An affine function of loops.
struct Affine {
  /// By loop; nonzero.
  std::map<std::size_t, std::int64_t> steps;
  std::int64_t start = 0;

  bool operator==(const Affine&) const = default;
};

/// Returns no value if the scalar is not affine.
std::optional<Affine> affine_of(const Scalar& scalar);
Scalar scalar_of(const Affine& affine);

/// Rewrites every scalar of a block, operands first.
class ScalarRewriter {
 public:
  using Change = std::function<Scalar(ScalarNode node)>;
  explicit ScalarRewriter(Change change) : change_(std::move(change)) {}
  void apply(Block& block);

 private:
  Scalar apply(const Scalar& scalar);

  Change change_;
  std::unordered_map<const ScalarNode*, Scalar> done_;
  std::vector<Scalar> kept_;  // Keeps nodes alive, so that addresses stay unique.
};

/// Calls `visit` for every statement, pre-order.
void for_each_statement(Block& block, const std::function<void(Statement&)>& visit);

}  // namespace tenon::nests
