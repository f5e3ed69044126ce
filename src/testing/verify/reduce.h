#pragma once

#include "reference/evaluate.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon::testing {

/// A graph and inputs that show a failure.
struct Reproducer {
  Graph graph;
  std::vector<Datum> inputs;
};

/// Returns whether a candidate still shows the failure; called for many graphs, some of which do
/// not run.
using Shows = std::function<bool(const Reproducer&)>;

/// Test-case reduction: returns the smallest reproducer found. Drops outputs, nodes and attributes,
/// turns intermediate values into inputs, shrinks extents, and simplifies elements. `how`:
/// evaluation options.
Reproducer reduce(Reproducer reproducer, const Shows& shows,
                  const reference::EvaluateOptions& how = {});

/// Returns the graph as text, followed by comments with the inputs' values.
std::string print_reproducer(const Reproducer& reproducer);

}  // namespace tenon::testing
