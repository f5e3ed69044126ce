#pragma once

#include "nests/scalar.h"

#include <unordered_map>
#include <unordered_set>

namespace tenon::nests {

/// What a walk found out about numbers. Numbers share their parts: as trees they can be of any
/// size, so every walk looks at each node once.
template <class T>
class ScalarMemo {
 public:
  /// What was found before, else what `find` gives. A node that nobody else holds is met only once.
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

/// Whether `holds` for the number or something that it is made of.
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
