#pragma once

#include "diagnose/check.h"
#include "driver/pipeline.h"
#include "ops/definition/evaluation.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::diagnose {

/// The first value that violates a rule, with the operands of its producer.
struct FoundFault {
  std::string value, op;
  /// "element [0] is nan"
  std::string what;
  /// for a group, the responsible member: "l (log)"; empty otherwise
  std::string inside;
  /// the pass that introduced it; empty if the original model has it
  std::string pass;
  /// the input that already violates it, in place of a node
  std::string at_input;
  /// of the node, by name
  std::vector<std::pair<std::string, Tensor>> inputs;
};

/// Runs the graph after `passes`, compiled or in the reference, and returns the first value that
/// violates the rule; nullopt if all satisfy it. Then runs the original graph in the reference
/// after each pass to find the responsible one.
struct FaultSearch {
  ValueRule rule;
  bool is_compiled = true;
  int threads = 0;
  std::vector<passes::Pass> passes;
};
std::optional<FoundFault> find_fault(const Graph& graph, const std::vector<Datum>& inputs,
                                     const FaultSearch& search);

}  // namespace tenon::diagnose
