#include "testing/varied_extents.h"

#include "base/error.h"
#include "base/new_file.h"
#include "frontends/onnx/datum_proto.h"
#include "frontends/onnx/input_extents.h"
#include "ops/families/tensor_parts.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace tenon::testing {
namespace {

// Limits on the cost of a run with a changed extent.
constexpr std::int64_t kMaxResultBytes = std::int64_t{1} << 28, kMaxNodeRuns = 100'000,
                       kMaxNodeOperations = std::int64_t{1} << 32;

struct VariationOutcome {
  std::optional<std::vector<Datum>> results;
  std::string refusal;
  bool has_place = false;
};

template <class Run>
VariationOutcome outcome_of(Run run) {
  VariationOutcome outcome;
  try {
    outcome.results = run();
  } catch (const Error& error) {
    outcome.refusal = error.what();
    outcome.has_place = error.has_place() || outcome.refusal.find('\'') != std::string::npos;
  }
  return outcome;
}

std::string difference(const std::vector<Datum>& actual, const std::vector<Datum>& expected,
                       const Tolerance& tolerance) {
  if (actual.size() != expected.size()) return "another number of outputs";
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const Comparison comparison = compare(actual[k], expected[k], tolerance);
    if (!comparison.is_equal) return concat("output ", k, ": ", comparison.what);
  }
  return "";
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  NewFile file(path.string());
  file.out() << bytes;
  file.finish();
}

void keep(const std::filesystem::path& folder, const std::vector<Datum>& inputs,
          const VariationOutcome& outcome) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw Error("cannot make a folder", ErrorKind::Usage).at(folder.string()).got(failed.message());
  const auto write_all = [&](const char* name, const std::vector<Datum>& data) {
    for (std::size_t k = 0; k < data.size(); ++k) {
      write_file(folder / concat(name, k, ".pb"), frontends::onnx::write_datum(data[k]));
    }
  };
  write_all("input_", inputs);
  if (outcome.results) {
    write_all("output_", *outcome.results);
  } else {
    write_file(folder / "error.txt", outcome.refusal);
  }
}

}  // namespace

std::vector<std::optional<Dims>> symbolic_extents(const Graph& graph) {
  std::vector<std::optional<Dims>> all;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    const Type& type = graph.value(graph.inputs()[k]).type;
    std::optional<Dims>& dims = all.emplace_back();
    if (!type.is_tensor()) continue;
    dims.emplace();
    for (std::size_t axis = 0; axis < type.tensor().rank(); ++axis)
      dims->push_back(Dim::symbol(concat("s", k, "_", axis)));
  }
  return all;
}

std::vector<Variation> variations_of(const std::vector<Datum>& inputs) {
  std::vector<Variation> all;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].is_tensor()) continue;
    const Shape& shape = inputs[k].tensor().shape();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::set<std::int64_t> extents{shape[axis] + 1, shape[axis] - 1, 1, 0};
      extents.erase(shape[axis]);
      for (const std::int64_t extent : extents) {
        if (extent >= 0) all.push_back({k, axis, extent});
      }
    }
  }
  return all;
}

std::vector<Datum> varied(const std::vector<Datum>& inputs, const Variation& variation) {
  std::vector<Datum> changed = inputs;
  const Tensor& from = inputs[variation.input].tensor();
  Shape shape = from.shape();
  const std::int64_t before = shape[variation.axis];
  shape[variation.axis] = variation.extent;
  Tensor to(from.dtype(), shape);
  const Rows rows = rows_around(from.shape(), variation.axis);
  for (std::int64_t row = 0; row < rows.count && before > 0 && rows.inner > 0; ++row) {
    for (std::int64_t position = 0; position < variation.extent; ++position) {
      copy_elements(to, (row * variation.extent + position) * rows.inner, from,
                    (row * before + position % before) * rows.inner, rows.inner);
    }
  }
  changed[variation.input] = std::move(to);
  return changed;
}

std::string to_string(const Variation& variation, const Graph& graph,
                      const std::vector<Datum>& inputs) {
  return concat("input '", graph.value(graph.inputs()[variation.input]).name, "', axis ",
                variation.axis, ", extent ",
                inputs[variation.input].tensor().shape()[variation.axis], " -> ", variation.extent);
}

VariedRuns run_varied(const std::string& model, const Graph& graph,
                      const std::vector<Datum>& inputs, const RunSymbolic& run,
                      const Tolerance& tolerance, const std::string& folder) {
  VariedRuns runs;
  std::size_t number = 0;
  for (const Variation& variation : variations_of(inputs)) {
    const std::vector<Datum> changed = varied(inputs, variation);
    const VariationOutcome expected = outcome_of([&] {
      std::vector<std::optional<Dims>> numbers;
      for (const Datum& input : changed) {
        numbers.emplace_back();
        if (!input.is_tensor()) continue;
        const Shape& shape = input.tensor().shape();
        numbers.back() = Dims(shape.begin(), shape.end());
      }
      reference::EvaluateOptions options;
      options.thread_count = 1;
      options.max_result_bytes = kMaxResultBytes;
      options.max_node_operations = kMaxNodeOperations;
      options.node_runs_left = std::make_shared<std::int64_t>(kMaxNodeRuns);
      return reference::evaluate(frontends::onnx::import_with_extents(model, numbers), changed,
                                 options);
    });
    const VariationOutcome actual = outcome_of([&] { return run(changed); });
    if (!folder.empty()) {
      keep(std::filesystem::path(folder) / concat("test_data_set_", number++), changed, actual);
    }
    const std::string name = to_string(variation, graph, inputs);
    if (actual.results && expected.results) {
      const std::string what = difference(*actual.results, *expected.results, tolerance);
      if (what.empty()) {
        ++runs.equal;
      } else {
        runs.wrong.push_back(concat(name, ": ", what));
      }
    } else if (actual.results) {
      runs.wrong.push_back(concat(name, ": a result, where there is none: ", expected.refusal));
    } else if (!actual.has_place) {
      runs.wrong.push_back(concat(name, ": an error that does not say where: ", actual.refusal));
    } else if (expected.results) {
      runs.stricter.push_back(concat(name, ": ", actual.refusal));
    } else {
      ++runs.refused;
    }
  }
  return runs;
}

}  // namespace tenon::testing
