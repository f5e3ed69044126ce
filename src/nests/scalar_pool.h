#pragma once

#include "nests/scalar.h"

#include <unordered_map>
#include <vector>

namespace tenon::nests {

/// Hash-consing of scalars: structurally equal expressions become the same node, so that caches
/// keyed by node find them.
class ScalarPool {
 public:
  Scalar operator()(const Scalar& scalar);
  void clear();

 private:
  std::unordered_multimap<std::size_t, Scalar> made_;  // By structural hash.
  std::unordered_map<const ScalarNode*, Scalar> known_;
  std::vector<Scalar> kept_;  // Keeps nodes alive, so that addresses stay unique.
};

}  // namespace tenon::nests
