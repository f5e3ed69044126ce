#pragma once

#include "ir/graph.h"
#include "testing/compare.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon::testing {

/// Returns extents with a distinct symbol for every axis of the graph's inputs; nullopt for an
/// input that is not a tensor of known rank.
std::vector<std::optional<Dims>> symbolic_extents(const Graph& graph);

/// A changed extent of one axis of one input of a case.
struct Variation {
  std::size_t input = 0, axis = 0;
  std::int64_t extent = 0;
};
/// Returns, for every axis of every tensor, variations by one more and one less, 1 and 0.
std::vector<Variation> variations_of(const std::vector<Datum>& inputs);
/// Returns the inputs with that extent: truncated, or repeated from the start.
std::vector<Datum> varied(const std::vector<Datum>& inputs, const Variation& variation);
/// Returns "input 'x', axis 1, extent 3 -> 4".
std::string to_string(const Variation& variation, const Graph& graph,
                      const std::vector<Datum>& inputs);

/// Results of running one case with one extent changed at a time.
struct VariedRuns {
  /// equal to the graph imported with these extents
  std::size_t equal = 0;
  /// refused by both
  std::size_t refused = 0;
  /// Refused, although the graph accepts these extents statically.
  std::vector<std::string> stricter;
  /// a different result, a result instead of an error, or an error without a location
  std::vector<std::string> wrong;
};

/// Runs a graph with symbolic extents on the inputs; throws Error to refuse them.
using RunSymbolic = std::function<std::vector<Datum>(const std::vector<Datum>& inputs)>;

/// Changes one extent at a time and compares with the reference on the model imported with those
/// numbers. A nonempty `folder` receives a data set of each run in the layout of ONNX's tests:
/// `test_data_set_3` with `input_0.pb` and `output_0.pb`, or `error.txt` if it was refused.
VariedRuns run_varied(const std::string& model, const Graph& graph,
                      const std::vector<Datum>& inputs, const RunSymbolic& run,
                      const Tolerance& tolerance, const std::string& folder = "");

}  // namespace tenon::testing
