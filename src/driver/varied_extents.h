#pragma once

#include "driver/compare.h"
#include "ir/graph.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// The extents of a graph's inputs with a symbol of its own for every axis, by position; nothing
/// for an input that is no tensor of known rank.
std::vector<std::optional<Dims>> symbolic_extents(const Graph& graph);

/// One axis of one input with another extent than a case gives it.
struct Variation {
  std::size_t input = 0, axis = 0;
  std::int64_t extent = 0;
};
/// For every axis of every tensor: one more and one less, 1 and 0.
std::vector<Variation> variations_of(const std::vector<Datum>& inputs);
/// The inputs with that extent: elements from the first position on, again from there where they
/// end.
std::vector<Datum> varied(const std::vector<Datum>& inputs, const Variation& variation);
/// "input 'x', axis 1, extent 3 -> 4".
std::string to_string(const Variation& variation, const Graph& graph,
                      const std::vector<Datum>& inputs);

/// What became of the runs of one case with one extent changed at a time.
struct VariedRuns {
  /// gave what the graph gives when it is imported with these extents
  std::size_t equal = 0;
  /// by both
  std::size_t refused = 0;
  /// Refused, though the graph takes these extents when it knows them beforehand.
  std::vector<std::string> stricter;
  /// another result, a result where there is none, an error without a place
  std::vector<std::string> wrong;
};

/// What a graph of symbolic extents gives for the inputs; throws Error to refuse them.
using RunSymbolic = std::function<std::vector<Datum>(const std::vector<Datum>& inputs)>;

/// Changes one extent at a time and compares with the reference on the model imported with those
/// numbers. A `folder` that is named gets a data set of each run, as ONNX's tests have them:
/// `test_data_set_3` with `input_0.pb` and `output_0.pb`, or `error.txt` where it was refused.
VariedRuns run_varied(const std::string& model, const Graph& graph,
                      const std::vector<Datum>& inputs, const RunSymbolic& run,
                      const Tolerance& tolerance, const std::string& folder = "");

}  // namespace tenon
