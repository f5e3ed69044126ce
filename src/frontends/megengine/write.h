#pragma once

#include "frontends/megengine/tables.h"
#include "frontends/own_node.h"
#include "ir/graph.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::megengine {

/// What MegEngine would have put down of this graph before a run: no times, no addresses; the nodes
/// of `own` as Tenon's. Throws an Error of kind Unsupported for values that are no tensors, and for
/// symbols: a profile is of one run.
Profile write_graph(const Graph& graph, const OwnNodes& own = {});

/// The graph with numbers for its symbols: those given, and the least of their range (at least 1)
/// for the others.
Graph with_least_symbols(const Graph& graph, DimBindings bindings);

/// What a run adds to a graph's profile. Values go by their names.
struct RunFacts {
  struct Times {
    /// a thread or a comp node
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
/// What MegEngine would have put down behind a run: the operators in the order they ran in, with
/// times, where each value lay. Operators that took part in no run are not executed. Throws as
/// `write_graph` does.
Profile write_run(const Graph& graph, const RunFacts& facts);

}  // namespace tenon::megengine
