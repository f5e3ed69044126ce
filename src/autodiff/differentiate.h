#pragma once

#include "ops/definition/gradient.h"

#include <functional>
#include <vector>

namespace tenon::inline autodiff {

/// Reverse-mode automatic differentiation: appends the nodes that compute the gradient of the sum
/// of `y` with respect to each of `xs`. Values that `y` does not depend on get zeros. Throws Error
/// (Unsupported) with the reason if an op on the path has no gradient.
std::vector<Var> differentiate(Builder& builder, Var y, const std::vector<Var>& xs);

/// Callback for each node whose gradient rule was applied; the rule's nodes have ids from `first`
/// to the graph's bound.
using OnGradient = std::function<void(NodeId node, NodeId first)>;

/// Sums the gradients that flow in at several values. Returns an invalid Var for values without a
/// gradient. Integers and booleans carry no gradient: a value that depends on `xs` only through
/// them is constant almost everywhere.
std::vector<Var> differentiate(Builder& builder, const std::vector<Flow>& flows,
                               const std::vector<Var>& xs);
std::vector<Var> differentiate(Builder& builder, const std::vector<Flow>& flows,
                               const std::vector<Var>& xs, const OnGradient& on_gradient);

}  // namespace tenon::inline autodiff
