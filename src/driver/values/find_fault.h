#pragma once

#include "driver/pipeline.h"
#include "driver/values/check.h"
#include "ops/evaluation.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon {

/// Where a value first breaks a rule, and what went into the node that made it.
struct FoundFault {
  std::string value, op;
  /// "element [0] is nan"
  std::string what;
  /// of a group, the member that does it: "l (log)"; empty otherwise
  std::string inside;
  /// behind which it first shows; empty where the model itself has it
  std::string pass;
  /// the input that has it already; then there is no node
  std::string at_input;
  /// of the node, by name
  std::vector<std::pair<std::string, Tensor>> inputs;
};

/// Runs the graph that came out of `passes`, compiled or by definition, and finds the first value
/// that breaks the rule; nothing if none does. Then the graph as it was is run by definition up to
/// each pass, to tell which one is to blame.
struct FaultSearch {
  ValueRule rule;
  bool is_compiled = true;
  int threads = 0;
  std::vector<Pass> passes;
};
std::optional<FoundFault> find_fault(const Graph& graph, const std::vector<Datum>& inputs,
                                     const FaultSearch& search);

}  // namespace tenon
