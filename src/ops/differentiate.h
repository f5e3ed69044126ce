#pragma once

#include <vector>

#include "tenon/builder.h"

namespace tenon {

/// Appends the nodes that compute the gradient of `y` (its elements summed) by each of `xs`, backwards
/// through the graph from the op's own rules. A value that `y` does not depend on gets zeros. Throws
/// Error (Unsupported) with the reason where an op on the way has no gradient.
std::vector<Var> differentiate(Builder& builder, Var y, const std::vector<Var>& xs);

}  // namespace tenon
