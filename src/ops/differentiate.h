#pragma once

#include "ir/graph.h"
#include "tenon/builder.h"

#include <functional>
#include <vector>

namespace tenon {

/// A value and the gradient of the loss by it.
struct Flow {
  Var value, gradient;
};

/// Appends the nodes that compute the gradient of `y` (its elements summed) by each of `xs`,
/// backwards through the graph from the op's own rules. A value that `y` does not depend on gets
/// zeros. Throws Error (Unsupported) with the reason where an op on the way has no gradient.
std::vector<Var> differentiate(Builder& builder, Var y, const std::vector<Var>& xs);

/// Told of each node whose rule was used; what the rule made has ids from `first` on, up to the
/// graph's bound.
using OnGradient = std::function<void(NodeId node, NodeId first)>;

/// The same for gradients that flow in at several values, all added up. What nothing flows to gets
/// an invalid Var. Integers and truth values carry no gradient: what depends on `xs` only through
/// them is constant almost everywhere.
std::vector<Var> differentiate(Builder& builder, const std::vector<Flow>& flows,
                               const std::vector<Var>& xs, const OnGradient& on_gradient = {});

}  // namespace tenon
