#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "driver/compare.h"
#include "driver/compiled.h"
#include "driver/inputs.h"
#include "driver/model.h"
#include "frontends/numpy/npy.h"
#include "reference/evaluate.h"

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Statistics {
  double least = 0, mean = 0, greatest = 0;
  bool has_numbers = false;
};

Statistics statistics_of(const Datum& datum) {
  Statistics result;
  if (!datum.is_tensor() || datum.tensor().dtype() == DType::String || datum.tensor().size() == 0) return result;
  const std::vector<double> values = datum.tensor().reals();
  double sum = 0;
  result = {values[0], 0, values[0], true};
  for (double value : values) {
    result.least = std::min(result.least, value);
    result.greatest = std::max(result.greatest, value);
    sum += value;
  }
  result.mean = sum / static_cast<double>(values.size());
  return result;
}

std::string folder_of(const std::string& text, const char* option) {
  if (text.rfind('@', 0) != 0 || text.size() == 1) {
    throw Error(concat(option, " takes a folder"), ErrorKind::Usage).expected("@DIR").got(text);
  }
  return text.substr(1);
}

std::string short_number(double value) { return format_real(static_cast<float>(value)); }

// Writes values as NAME.npy into the folder that an option's text names.
void save_values(const Graph& graph, const std::vector<ValueId>& ids, const std::vector<Datum>& values,
                 const std::string& text, const char* option) {
  if (text.empty()) return;
  const fs::path folder = folder_of(text, option);
  fs::create_directories(folder);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const fs::path file = folder / (file_name_of(graph.value(ids[k]).name) + ".npy");
    numpy::write_npy_file(values[k].tensor(), file.string());
  }
}

}  // namespace

int run(const RunOptions& options, OutputFormat format) {
  const Graph graph = load_model(options.model);
  std::vector<Datum> inputs = read_inputs(graph, options.inputs, parse_shapes(options.shapes));
  save_values(graph, graph.inputs(), inputs, options.save_inputs, "--save-inputs");
  Progress progress("run");
  reference::Options settings;
  settings.thread_count = options.threads;
  settings.on_progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  const bool is_compiled = is_compiled_target(options.target);
  std::unique_ptr<CompiledModel> compiled;
  if (is_compiled) compiled = std::make_unique<CompiledModel>(compile_graph(graph), options.threads);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Datum> outputs =
      is_compiled ? compiled->run(inputs) : reference::evaluate(graph, std::move(inputs), settings);
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;

  save_values(graph, graph.outputs(), outputs, options.output, "--output");
  bool all_equal = true;
  Json json = {{"model", options.model}, {"elapsed_ms", elapsed.count()}, {"outputs", Json::array()}};
  std::vector<std::string> titles = {"output", "type", ">least", ">mean", ">greatest"};
  if (!options.expect.empty()) titles.insert(titles.end(), {">largest error", "verdict"});
  Table table(titles);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string& name = graph.value(graph.outputs()[k]).name;
    const Statistics numbers = statistics_of(outputs[k]);
    std::vector<std::string> row = {name, to_string(outputs[k].type())};
    Json entry = {{"name", name}, {"type", to_string(outputs[k].type())}};
    if (numbers.has_numbers) {
      row.insert(row.end(), {short_number(numbers.least), short_number(numbers.mean), short_number(numbers.greatest)});
      entry.update(Json{{"least", numbers.least}, {"mean", numbers.mean}, {"greatest", numbers.greatest}});
    }
    row.resize(5);
    if (!options.expect.empty()) {
      const std::string file = find_value_file(folder_of(options.expect, "--expect"), name, "output", k);
      if (file.empty()) {
        throw Error(concat("nothing to compare output '", name, "' with"), ErrorKind::Usage)
            .expected(file_name_of(name), ".npy, ", file_name_of(name), ".pb or output_", k, ".pb")
            .at(options.expect.substr(1));
      }
      const Comparison comparison =
          compare(outputs[k], read_value_file(file, outputs[k].type()), {options.relative, options.absolute});
      all_equal &= comparison.is_equal;
      row.insert(row.end(), {short_number(comparison.largest_error), comparison.is_equal ? "equal" : comparison.what});
      entry.update(Json{{"equal", comparison.is_equal}, {"largest_error", comparison.largest_error}, {"what", comparison.what}});
    }
    table.add(std::move(row));
    json["outputs"].push_back(std::move(entry));
  }
  if (format == OutputFormat::Json) {
    std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    table.print(std::cout);
    std::cout << "\n" << graph.node_count() << " nodes in " << short_number(elapsed.count()) << (is_compiled ? " ms (compiled)\n" : " ms (reference evaluator)\n");
  }
  return all_equal ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace tenon::cli
