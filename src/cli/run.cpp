#include "base/error.h"
#include "base/interrupted.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "cli/value_files.h"
#include "host/compiled.h"
#include "ir/element_access.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "program/totals.h"
#include "reference/evaluate.h"
#include "testing/compare.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Statistics {
  double least = 0, mean = 0, greatest = 0;
  bool has_numbers = false;
};

Statistics statistics_of(const Datum& datum) {
  Statistics result;
  if (!datum.is_tensor() || datum.tensor().dtype() == DType::String || datum.tensor().size() == 0)
    return result;
  // Converts in blocks: as doubles, an output could take more memory than the network.
  const Tensor& tensor = datum.tensor();
  const std::size_t size = static_cast<std::size_t>(tensor.size()),
                    element_bytes = info(tensor.dtype()).storage_bytes;
  std::array<double, 1024> some{};
  double sum = 0;
  result = {tensor.real_at(0), 0, tensor.real_at(0), true};
  for (std::size_t at = 0; at < size; at += some.size()) {
    const std::span<double> values(some.data(), std::min(some.size(), size - at));
    elements::load_reals(tensor.dtype(), tensor.bytes().data() + at * element_bytes, values);
    for (const double value : values) {
      result.least = std::min(result.least, value);
      result.greatest = std::max(result.greatest, value);
      sum += value;
    }
  }
  result.mean = sum / static_cast<double>(size);
  return result;
}

std::string short_number(double value) { return format_real(static_cast<float>(value)); }

// Callback before each run of a body. Ctrl-C ends an endless loop between two iterations.
class BodyWatch {
 public:
  explicit BodyWatch(std::int64_t most) : most_(most) {}

  void operator()() {
    if (!interrupt_) interrupt_.emplace();
    if (Interrupt::is_asked()) {
      Interrupted error;
      error.got("Ctrl-C after ", count_, " runs of bodies of loops");
      throw error;
    }
    if (count_++ < most_ || most_ == 0) return;
    throw Error("loops run more often than allowed", ErrorKind::OutOfMemory)
        .expected("at most ", most_, " runs of their bodies in all")
        .hint("--max-trips sets the limit");
  }

 private:
  std::int64_t most_, count_ = 0;
  // absent for a model without loops, which Ctrl-C ends as usual
  std::optional<Interrupt> interrupt_;
};

// Computes the outputs, with a description of the method.
struct ModelRunner {
  Graph ports;  // with the model's inputs
  std::vector<std::string> outputs;
  std::string what;
  std::function<std::vector<Datum>(std::vector<Datum>)> run;
};

ModelRunner compiled_runner(Program program, const RunOptions& options) {
  ModelRunner runner;
  runner.ports = input_ports(program);
  runner.outputs = names_of(program, program.outputs);
  runner.what = concat(totals_of(program).steps, " steps");
  const auto model = std::make_shared<CompiledModel>(std::move(program), options.threads);
  runner.run = [model, most = options.max_trips](std::vector<Datum> inputs) {
    BodyWatch watch(most);
    model->executor().set_body_callback([&] { watch(); });
    return model->run(inputs);
  };
  return runner;
}

ModelRunner reference_runner(Graph graph, const RunOptions& options) {
  ModelRunner runner;
  for (const ValueId id : graph.outputs()) runner.outputs.push_back(graph.value(id).name);
  runner.what = concat(graph.node_count(), " nodes, reference evaluator");
  runner.ports = graph;
  runner.run = [graph = std::move(graph), threads = options.threads,
                most = options.max_trips](std::vector<Datum> inputs) {
    Progress progress("run");
    BodyWatch watch(most);
    reference::EvaluateOptions settings;
    settings.thread_count = threads;
    settings.before_body = [&] { watch(); };
    settings.on_progress = [&](std::size_t done, std::size_t total) {
      progress.update(done, total);
    };
    return reference::evaluate(graph, std::move(inputs), settings);
  };
  return runner;
}

// Parsed --output: the destination, and additional values inside the network.
struct WantedOutputs {
  std::string file;  // "@DIR", "@FILE.npz"; may be empty
  std::vector<std::string> names;
};

WantedOutputs wanted_outputs(const RunOptions& options) {
  WantedOutputs wanted;
  for (const std::string& text : options.outputs) {
    if (text.rfind('@', 0) != 0) {
      for (const std::string& name : split(text, ',')) wanted.names.push_back(name);
    } else if (wanted.file.empty()) {
      wanted.file = text;
    } else {
      throw Error("--output names two places to write to", ErrorKind::Usage)
          .got(wanted.file, " and ", text);
    }
  }
  return wanted;
}

void give_out(Graph& graph, const std::vector<std::string>& names) {
  std::vector<ValueId> outputs = graph.outputs();
  const auto add = [&](ValueId id) {
    if (std::ranges::find(outputs, id) == outputs.end()) outputs.push_back(id);
  };
  std::vector<std::string> known;
  for (const NodeId node : graph.nodes_in_order()) {
    for (const ValueId result : graph.node(node).results) {
      if (!result || graph.constant_of(result) != nullptr) continue;
      known.push_back(graph.value(result).name);
      if (names == std::vector<std::string>{"all"}) add(result);
    }
  }
  for (const std::string& name : names) {
    const ValueId found = graph.find(name);
    if (found) {
      add(found);
    } else if (name != "all" || names.size() > 1) {
      throw Error(concat("no value is called '", name, "'"), ErrorKind::Usage)
          .hint(known.size() < 10000 ? suggest_name(name, known) : "",
                "; --output=@DIR names a folder");
    }
  }
  graph.set_outputs(std::move(outputs));
}

// Returns a compiled runner, or the reference if it is requested, or by default if the model has
// ops without compilation.
ModelRunner runner_of(const RunOptions& options) {
  const bool by_reference = !options.target.empty() && !is_compiled_target(options.target);
  const models::ModelSource source(options.model);
  if (std::optional<Program> program = source.program(options.trust_program)) {
    if (by_reference) {
      throw Error("a program is machine code, which the reference evaluator does not run",
                  ErrorKind::Usage)
          .at(source.name())
          .hint("give the model that it was compiled from");
    }
    if (!wanted_outputs(options).names.empty() || options.batch > 0) {
      throw Error("a program gives out what it was compiled for", ErrorKind::Usage)
          .at(source.name())
          .hint("give the model itself with --output=NAME or --batch");
    }
    return compiled_runner(*std::move(program), options);
  }
  Graph graph = models::reshaped(models::rebatched(source.graph(), options.batch),
                                 models::parse_shapes(options.shapes));
  if (const WantedOutputs wanted = wanted_outputs(options); !wanted.names.empty())
    give_out(graph, wanted.names);
  if (by_reference) return reference_runner(std::move(graph), options);
  try {
    driver::CompileRequest request;
    request.threads = options.threads;
    request.is_untuned = options.untuned;
    request.preferred = options.preferred;
    request.target = target_of(options.target, "native", options.precision);
    return compiled_runner(compile_tuned(graph, request).program, options);
  } catch (const Error& error) {
    if (!options.target.empty() || error.kind() != ErrorKind::Unsupported) throw;
    return reference_runner(std::move(graph), options);
  }
}

}  // namespace

int run(const RunOptions& options, OutputFormat format) {
  if (!options.data.empty()) return run_on_data(options, format);
  if (!options.check_nan.empty() || options.check_range != 0 || !options.dump_values.empty())
    return run_observed(options, format);
  prepare_folder(options.save_inputs, "--save-inputs");
  const std::string output = wanted_outputs(options).file;
  prepare_folder(output, "--output");
  const ModelRunner runner = runner_of(options);
  std::vector<Datum> inputs =
      models::read_inputs(runner.ports, options.inputs, models::parse_shapes(options.shapes),
                          {options.mean, options.scale});
  std::vector<std::string> input_names;
  for (const ValueId id : runner.ports.inputs()) input_names.push_back(runner.ports.value(id).name);
  save_values(input_names, inputs, options.save_inputs, "--save-inputs");
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Datum> outputs = runner.run(std::move(inputs));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;

  save_values(runner.outputs, outputs, output, "--output");
  bool all_equal = true;
  Json json = {{"model", options.model},
               {"by", runner.what},
               {"elapsed_ms", elapsed.count()},
               {"outputs", Json::array()}};
  std::vector<std::string> titles = {"output", "type", ">least", ">mean", ">greatest"};
  if (!options.expect.empty()) titles.insert(titles.end(), {">largest error", "verdict"});
  Table table(titles);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const std::string& name = runner.outputs[k];
    const Statistics numbers = statistics_of(outputs[k]);
    std::vector<std::string> row = {name, to_string(outputs[k].type())};
    Json entry = {{"name", name}, {"type", to_string(outputs[k].type())}};
    if (numbers.has_numbers) {
      row.insert(row.end(), {short_number(numbers.least), short_number(numbers.mean),
                             short_number(numbers.greatest)});
      entry.update(
          Json{{"least", numbers.least}, {"mean", numbers.mean}, {"greatest", numbers.greatest}});
    }
    row.resize(5);
    if (!options.expect.empty()) {
      const std::string file =
          models::find_value_file(folder_of(options.expect, "--expect"), name, "output", k);
      if (file.empty()) {
        throw Error(concat("nothing to compare output '", name, "' with"), ErrorKind::Usage)
            .expected(models::file_name_of(name), ".npy, ", models::file_name_of(name),
                      ".pb, output_", k, ".pb or ", models::file_name_of(name), ".items")
            .at(options.expect.substr(1));
      }
      const testing::Comparison comparison =
          testing::compare(outputs[k], models::read_value_file(file, outputs[k].type()),
                           {options.relative, options.absolute});
      all_equal &= comparison.is_equal;
      row.insert(row.end(), {short_number(comparison.largest_error),
                             comparison.is_equal ? "equal" : comparison.what});
      entry.update(Json{{"equal", comparison.is_equal},
                        {"largest_error", comparison.largest_error},
                        {"what", comparison.what}});
    }
    table.add(std::move(row));
    json["outputs"].push_back(std::move(entry));
  }
  if (format == OutputFormat::Json) {
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    table.print(out());
    out() << "\n" << runner.what << ", " << short_number(elapsed.count()) << " ms\n";
  }
  return all_equal ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace tenon::cli
