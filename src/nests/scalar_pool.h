#pragma once

#include "nests/scalar.h"

#include <unordered_map>
#include <vector>

namespace tenon::nests {

/// Makes numbers that are written alike one: what is computed from the same things is the same
/// node, so that those who remember by node find it again.
class ScalarPool {
 public:
  Scalar operator()(const Scalar& scalar);
  void clear();

 private:
  std::unordered_multimap<std::size_t, Scalar> made_;  // by hash of what they are made of
  std::unordered_map<const ScalarNode*, Scalar> known_;
  std::vector<Scalar> kept_;  // so that no two nodes ever share an address
};

}  // namespace tenon::nests
