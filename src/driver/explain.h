#pragma once

#include "driver/compile.h"
#include "driver/pipeline.h"

#include <string>
#include <vector>

namespace tenon::driver {

/// History of one node through the passes, in their remarks.
struct Explanation {
  struct Step {
    std::string pass, text;
  };
  /// of its first result
  std::string name;
  /// before the passes; empty for a node that a pass created
  std::string op;
  std::string type;
  std::vector<Step> steps;
  /// after the passes; empty if the node was removed
  std::string end_op;
  /// with its layout
  std::string end_type;
  /// its fused group, by the group's first result; empty if it is not in a group
  std::string group;
  /// of the group: "y (relu)"
  std::vector<std::string> members;
  /// Candidates for each nest of the node or of its group: the chosen one first, then the others by
  /// cost, then those that refuse.
  struct Kernel {
    std::string name;
    struct Candidate {
      /// its verdict in words
      std::string name, text;
    };
    std::vector<Candidate> candidates;
  };
  std::vector<Kernel> kernels;
};

/// Runs the passes and follows the node that `name` names, by one of its results or by its source
/// name. Throws Error (Usage) with the nearest name.
Explanation explain(Graph graph, const std::string& name, PipelineOptions options = {},
                    const codegen::CompileOptions& compile = cpu_options());

/// Returns a decision's candidates in that order, in words.
Explanation::Kernel describe_decision(const codegen::Decision& decision);

}  // namespace tenon::driver
