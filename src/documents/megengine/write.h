#pragma once

#include "documents/megengine/tables.h"
#include "documents/native_node.h"
#include "ir/graph.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::documents::megengine {

/// Returns the profile that MegEngine would write for the graph before a run, without times and
/// addresses. Nodes of `own` become native Tenon nodes. Throws Error of kind Unsupported for values
/// that are not tensors, and for symbols, because a profile describes one run.
MegEngineProfile write_graph(const Graph& graph, const NativeNodes& own = {});

/// Replaces symbols by the given numbers, others by the least of their range (at least 1).
Graph with_least_symbols(const Graph& graph, DimBindings bindings);

/// Measurements of a run, by the names of values.
struct RunFacts {
  struct Times {
    /// thread or comp node
    std::string place;
    double start = 0, kern = 0, end = 0;
  };
  struct Ran {
    std::vector<Times> host, device;
    /// orders operators
    double begin = 0;
  };
  /// by the first result
  std::map<std::string, Ran> nodes;
  /// that were copied in
  std::map<std::string, Ran> inputs;
  /// that were copied out
  std::map<std::string, Ran> outputs;
  /// of values while they are alive
  std::map<std::string, std::int64_t> addresses;
  DimBindings symbols;
};
/// Returns the profile that MegEngine would write after a run: operators in execution order, with
/// times and addresses. Operators without a measurement are not executed. Throws as `write_graph`
/// does.
MegEngineProfile write_run(const Graph& graph, const RunFacts& facts);

}  // namespace tenon::documents::megengine
