#pragma once

#include "driver/compile.h"
#include "driver/pipeline.h"

#include <string>
#include <vector>

namespace tenon {

/// What became of one node of a graph, pass by pass, in the passes' own words.
struct Explanation {
  struct Step {
    std::string pass, text;
  };
  /// of its first result
  std::string name;
  /// as it was before the passes; empty for a node that a pass made
  std::string op;
  std::string type;
  std::vector<Step> steps;
  /// after the passes; empty where it is gone
  std::string end_op;
  /// with its layout
  std::string end_type;
  /// the group it is in, by its first result; empty where it is in none
  std::string group;
  /// of the group: "y (relu)"
  std::vector<std::string> members;
  /// What could compute the node, or the group it is in, for each of its nests: the one that does
  /// first, then the others by cost, then those that refuse.
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

/// Runs the passes and follows the node that `name` names: by one of its results or by the source's
/// own name. Throws an Error (Usage) that offers the nearest name.
Explanation explain(Graph graph, const std::string& name, PipelineOptions options = {},
                    const codegen::CompileOptions& compile = cpu_options());

/// A decision's candidates in that order and in words.
Explanation::Kernel in_words(const codegen::Decision& decision);

}  // namespace tenon
