#pragma once

#include "reference/evaluate.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon {

/// A graph and inputs on which something shows.
struct Reproducer {
  Graph graph;
  std::vector<Datum> inputs;
};

/// Whether what is looked for still shows; asked of many graphs, some of which do not run.
using Shows = std::function<bool(const Reproducer&)>;

/// The smallest part of a reproducer that was found to show the same: outputs, nodes and attributes
/// are left out, values inside become inputs, extents shrink, elements become plain. `how` says how
/// graphs are run.
Reproducer reduce(Reproducer reproducer, const Shows& shows, const reference::Options& how = {});

/// The graph as text, its inputs' values as comments behind it.
std::string print_reproducer(const Reproducer& reproducer);

}  // namespace tenon
