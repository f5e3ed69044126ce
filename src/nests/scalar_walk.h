#pragma once

#include "nests/scalar.h"

#include <unordered_map>
#include <unordered_set>

namespace tenon::nests {

/// Memo table for traversals of scalars. Scalars are DAGs whose tree size may be exponential, so
/// every traversal visits each node once.
template <class T>
class ScalarMemo {
 public:
  /// Returns the cached result, otherwise that of `find`. Unshared nodes are visited only once and
  /// not cached.
  template <class Find>
  T of(const Scalar& scalar, const Find& find) {
    if (scalar->args.empty() || !scalar.is_shared()) return find();
    const auto found = known_.find(&scalar.node());
    if (found != known_.end()) return found->second;
    return known_.emplace(&scalar.node(), find()).first->second;
  }

 private:
  std::unordered_map<const ScalarNode*, T> known_;
};

/// Returns whether `holds` for the scalar or one of its subexpressions.
template <class Holds>
bool any_node(const Scalar& scalar, const Holds& holds) {
  if (scalar->args.empty()) return holds(scalar.node());
  std::unordered_set<const ScalarNode*> seen;
  std::vector<const ScalarNode*> work{&scalar.node()};
  while (!work.empty()) {
    const ScalarNode* node = work.back();
    work.pop_back();
    if (holds(*node)) return true;
    for (const Scalar& arg : node->args) {
      if (!arg.is_shared() || seen.insert(&arg.node()).second) work.push_back(&arg.node());
    }
  }
  return false;
}

}  // namespace tenon::nests
