#include "driver/pipeline.h"

#include <algorithm>

#include "base/error.h"
#include "driver/compare.h"
#include "driver/inputs.h"
#include "ir/verify.h"
#include "reference/evaluate.h"

namespace tenon {
namespace {

// Passes may round differently, but not by more than this.
constexpr Tolerance kPassTolerance{1e-4, 1e-5};

void refuse_change(const std::string& pass, const Graph& before, const Graph& after) {
  const std::vector<Datum> inputs = random_inputs(before, 1);
  const std::vector<Datum> expected = reference::evaluate(before, inputs);
  const std::vector<Datum> actual = reference::evaluate(after, inputs);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const Comparison comparison = compare(actual[k], expected[k], kPassTolerance);
    if (comparison.is_equal) continue;
    throw Error(concat("pass '", pass, "' changes a result"), ErrorKind::ComparisonFailed)
        .at("output '", before.value(before.outputs()[k]).name, "'")
        .got(comparison.what);
  }
}

}  // namespace

std::vector<std::string> standard_passes() {
  return {
      "fold-constants",  // first: shapes that are numbers and symbols are what rules ask about
      "simplify",
      "fuse",   // behind all that looks for patterns: a group hides its members
      "order",  // last: by now it is known what runs and what is held
  };
}

Graph run_pipeline(Graph graph, const PipelineOptions& options) {
  const std::vector<std::string> passes = options.passes.empty() ? standard_passes() : options.passes;
  for (const std::string& name : options.without) find_pass(name);
  if (!options.stop_after.empty()) find_pass(options.stop_after);
  for (const std::string& name : passes) {
    const Pass& pass = find_pass(name);
    const bool is_left_out = std::find(options.without.begin(), options.without.end(), name) != options.without.end();
    if (!is_left_out) {
      Graph before = options.verify_each ? graph : Graph();
      graph = pass.run(std::move(graph), options.pass_options);
      verify(graph);
      if (options.verify_each) refuse_change(name, before, graph);
    }
    if (name == options.stop_after) break;
  }
  return graph;
}

}  // namespace tenon
