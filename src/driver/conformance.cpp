#include "driver/conformance.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/compile.h"
#include "frontends/numpy/npz.h"
#include "frontends/onnx/datum_proto.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/input_extents.h"
#include "frontends/torch/import.h"
#include "host/compiled.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <thread>

namespace tenon::driver {
namespace {

namespace fs = std::filesystem;

bool is_torch(const ConformanceCase& test) { return test.model.ends_with(".pt2"); }

// Inputs, and the expected outputs by position; an absent one is not compared.
struct DataSet {
  std::vector<Datum> inputs;
  std::vector<std::optional<Datum>> outputs;
};

std::optional<DataSet> onnx_data_set(const Graph& graph, const fs::path& folder, int set) {
  const fs::path data = folder / concat("test_data_set_", set);
  if (!fs::is_directory(data)) return std::nullopt;
  DataSet made;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k) {
    const fs::path file = data / concat("input_", k, ".pb");
    made.inputs.push_back(
        frontends::onnx::read_datum_file(file.string(), graph.value(graph.inputs()[k]).type));
  }
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    const fs::path file = data / concat("output_", k, ".pb");
    made.outputs.push_back(fs::exists(file)
                               ? std::optional(frontends::onnx::read_datum_file(
                                     file.string(), graph.value(graph.outputs()[k]).type))
                               : std::nullopt);
  }
  return made;
}

std::optional<DataSet> torch_data_set(const Graph& graph, const fs::path& model, int set) {
  if (set > 0) return std::nullopt;
  const std::string stem = model.filename().string();
  const fs::path file = model.parent_path() / (stem.substr(0, stem.find('.')) + ".npz");
  const auto arrays = frontends::numpy::read_npz_file(file.string());
  DataSet made;
  for (std::size_t k = 0; k < graph.inputs().size(); ++k)
    made.inputs.emplace_back(arrays.at(concat("in", k)));
  for (std::size_t k = 0; k < graph.outputs().size(); ++k)
    made.outputs.emplace_back(arrays.at(concat("out", k)));
  return made;
}

// Runs every data set of a case; returns an error text, or an empty one.
std::string run_case(const ConformanceCase& test, const ConformanceOptions& settings,
                     ConformanceResult& result) {
  const testing::Tolerance& tolerance = settings.tolerance;
  const std::string& model = test.model;
  Graph graph =
      is_torch(test) ? frontends::torch::import_torch(model) : frontends::onnx::import_onnx(model);
  if (settings.is_symbolic && is_torch(test))
    throw Error("symbols of an exported program are those that it states", ErrorKind::Usage);
  if (settings.is_symbolic)
    graph = frontends::onnx::import_with_extents(model, testing::symbolic_extents(graph));
  std::optional<CompiledModel> compiled;
  if (settings.is_compiled) {
    compiled.emplace(compile_graph(graph, settings.target), 1);
    result.is_kernel_only = compiled->totals().operator_steps == 0;
  }
  int sets = 0;
  for (int set = 0;; ++set) {
    const std::optional<DataSet> data =
        is_torch(test) ? torch_data_set(graph, model, set)
                       : onnx_data_set(graph, fs::path(model).parent_path(), set);
    if (!data) break;
    ++sets;
    reference::EvaluateOptions options;
    options.thread_count = 1;  // the cases already run in parallel
    const testing::RunSymbolic run = [&](const std::vector<Datum>& given) {
      return compiled ? compiled->run(given) : reference::evaluate(graph, given, options);
    };
    if (settings.varies && set == 0 && !settings.expected_failures.contains(test.name)) {
      const std::string kept =
          settings.kept_runs.empty() ? "" : (fs::path(settings.kept_runs) / test.name).string();
      result.varied = testing::run_varied(model, graph, data->inputs, run, tolerance, kept);
      if (!result.varied.wrong.empty()) return join(result.varied.wrong, "\n  ");
    }
    const std::vector<Datum> outputs = run(data->inputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!data->outputs[k]) continue;
      const testing::Comparison comparison = compare(outputs[k], *data->outputs[k], tolerance);
      if (!comparison.is_equal) {
        return concat("output '", graph.value(graph.outputs()[k]).name, "': ", comparison.what);
      }
    }
  }
  return sets > 0 ? "" : "it has no test data";
}

ConformanceResult judge(const ConformanceCase& test, const ConformanceOptions& options) {
  using Status = ConformanceResult::Status;
  ConformanceResult result;
  result.name = test.name;
  const auto begin = std::chrono::steady_clock::now();
  try {
    result.reason = run_case(test, options, result);
  } catch (const std::exception& error) {
    result.reason = error.what();
  }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  result.elapsed_ms = elapsed.count();
  const bool passed = result.reason.empty();
  const auto listed = options.expected_failures.find(test.name);
  if (listed == options.expected_failures.end()) {
    result.status = passed ? Status::Passed : Status::Failed;
  } else {
    result.status = passed ? Status::ListedButPassed : Status::ListedFailure;
    result.reason = passed ? concat("it passes now; take it off the list (", listed->second, ")")
                           : listed->second;
  }
  return result;
}

}  // namespace

std::vector<ConformanceCase> find_conformance_cases(const std::string& folder) {
  if (!fs::is_directory(folder)) {
    throw Error("there is no such folder", ErrorKind::Usage).got(folder);
  }
  const auto is_case = [](const fs::path& path) { return fs::exists(path / "model.onnx"); };
  const auto name_of = [](fs::path path) {
    if (path.filename().empty()) path = path.parent_path();
    return path.filename().string();
  };
  const auto model_in = [](const fs::path& path) { return (path / "model.onnx").string(); };
  if (is_case(folder)) return {{name_of(folder), model_in(folder)}};
  std::vector<ConformanceCase> cases;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_case(entry.path())) cases.push_back({name_of(entry.path()), model_in(entry.path())});
    if (entry.path().extension() == ".pt2")
      cases.push_back({entry.path().stem().string(), entry.path().string()});
  }
  std::sort(cases.begin(), cases.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  if (cases.empty()) {
    throw Error("the folder has no cases", ErrorKind::Usage)
        .expected(
            "folders that hold model.onnx and test_data_set_0, or files NAME.pt2 and NAME.npz")
        .got(folder);
  }
  return cases;
}

std::vector<ConformanceResult> run_conformance(const std::vector<ConformanceCase>& all,
                                               const ConformanceOptions& options) {
  std::vector<ConformanceCase> cases;
  for (const ConformanceCase& test : all) {
    if (test.name.find(options.filter) != std::string::npos) cases.push_back(test);
  }
  std::vector<ConformanceResult> results(cases.size());
  std::atomic<std::size_t> next = 0, done = 0;
  std::mutex guard;
  const auto work = [&] {
    for (std::size_t k = next++; k < cases.size(); k = next++) {
      results[k] = judge(cases[k], options);
      const std::size_t finished = ++done;
      if (!options.on_progress) continue;
      const std::lock_guard lock(guard);
      options.on_progress(finished, cases.size());
    }
  };
  std::vector<std::thread> threads;
  for (unsigned k = 1; k < std::max(1u, std::thread::hardware_concurrency()); ++k) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::map<std::string, std::string> read_expected_failures(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) throw Error("cannot open the list of expected failures", ErrorKind::Usage).at(path);
  std::map<std::string, std::string> failures;
  for (std::string line; std::getline(stream, line);) {
    const std::string_view text = trim(line);
    if (text.empty() || text.front() == '#') continue;
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      throw Error("an expected failure has no reason", ErrorKind::Usage).at(path).got(text);
    }
    failures.emplace(text.substr(0, space), trim(text.substr(space)));
  }
  return failures;
}

}  // namespace tenon::driver
