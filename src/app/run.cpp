#include "app/run.h"

#include "app/targets.h"
#include "app/value_files.h"
#include "base/error.h"
#include "base/interrupted.h"
#include "base/text.h"
#include "host/compiled.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "program/totals.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace tenon::app {
namespace {

// Callback before each run of a body. An interruption ends an endless loop between two iterations.
class BodyWatch {
 public:
  BodyWatch(std::int64_t most, const RunCallbacks& callbacks)
      : most_(most), callbacks_(callbacks) {}

  void operator()() {
    if (!is_interrupted_ && callbacks_.watch_interrupts)
      is_interrupted_ = callbacks_.watch_interrupts();
    if (is_interrupted_ && is_interrupted_()) {
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
  const RunCallbacks& callbacks_;
  // empty for a model without loops, which Ctrl-C ends as usual
  std::function<bool()> is_interrupted_;
};

// Computes the outputs, with a description of the method.
struct ModelRunner {
  Graph ports;  // with the model's inputs
  std::vector<std::string> outputs;
  std::string what;
  std::function<std::vector<Datum>(std::vector<Datum>)> run;
};

ModelRunner compiled_runner(Program program, const RunOptions& options,
                            const RunCallbacks& callbacks) {
  ModelRunner runner;
  runner.ports = input_ports(program);
  runner.outputs = names_of(program, program.outputs);
  runner.what = concat(totals_of(program).steps, " steps");
  const auto model = std::make_shared<CompiledModel>(std::move(program), options.threads);
  runner.run = [model, most = options.max_trips, &callbacks](std::vector<Datum> inputs) {
    BodyWatch watch(most, callbacks);
    model->executor().set_body_callback([&] { watch(); });
    return model->run(inputs);
  };
  return runner;
}

ModelRunner reference_runner(Graph graph, const RunOptions& options,
                             const RunCallbacks& callbacks) {
  ModelRunner runner;
  for (const ValueId id : graph.outputs()) runner.outputs.push_back(graph.value(id).name);
  runner.what = concat(graph.node_count(), " nodes, reference evaluator");
  runner.ports = graph;
  runner.run = [graph = std::move(graph), threads = options.threads, most = options.max_trips,
                &callbacks](std::vector<Datum> inputs) {
    BodyWatch watch(most, callbacks);
    reference::EvaluateOptions settings;
    settings.thread_count = threads;
    settings.before_body = [&] { watch(); };
    settings.on_progress = callbacks.on_progress;
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
ModelRunner runner_of(const RunOptions& options, const RunCallbacks& callbacks) {
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
    return compiled_runner(*std::move(program), options, callbacks);
  }
  Graph graph = models::reshaped(models::rebatched(source.graph(), options.batch),
                                 models::parse_shapes(options.shapes));
  if (const WantedOutputs wanted = wanted_outputs(options); !wanted.names.empty())
    give_out(graph, wanted.names);
  if (by_reference) return reference_runner(std::move(graph), options, callbacks);
  try {
    driver::CompileRequest request;
    request.threads = options.threads;
    request.is_untuned = options.untuned;
    request.preferred = options.preferred;
    request.target = target_of(options.target, "native", options.precision);
    return compiled_runner(callbacks.compile(graph, request).program, options, callbacks);
  } catch (const Error& error) {
    if (!options.target.empty() || error.kind() != ErrorKind::Unsupported) throw;
    return reference_runner(std::move(graph), options, callbacks);
  }
}

testing::Comparison compare_with_file(const RunOptions& options, const std::string& name,
                                      std::size_t position, const Datum& output) {
  const std::string file =
      models::find_value_file(folder_of(options.expect, "--expect"), name, "output", position);
  if (file.empty()) {
    throw Error(concat("nothing to compare output '", name, "' with"), ErrorKind::Usage)
        .expected(models::file_name_of(name), ".npy, ", models::file_name_of(name), ".pb, output_",
                  position, ".pb or ", models::file_name_of(name), ".items")
        .at(options.expect.substr(1));
  }
  return testing::compare(output, models::read_value_file(file, output.type()),
                          {options.relative, options.absolute});
}

}  // namespace

RunResult run(const RunOptions& options, const RunCallbacks& callbacks) {
  prepare_folder(options.save_inputs, "--save-inputs");
  const std::string file = wanted_outputs(options).file;
  prepare_folder(file, "--output");
  const ModelRunner runner = runner_of(options, callbacks);
  std::vector<Datum> inputs =
      models::read_inputs(runner.ports, options.inputs, models::parse_shapes(options.shapes),
                          {options.mean, options.scale});
  std::vector<std::string> input_names;
  for (const ValueId id : runner.ports.inputs()) input_names.push_back(runner.ports.value(id).name);
  save_values(input_names, inputs, options.save_inputs, "--save-inputs");
  RunResult result;
  result.what = runner.what;
  result.names = runner.outputs;
  const auto begin = std::chrono::steady_clock::now();
  result.outputs = runner.run(std::move(inputs));
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  result.elapsed_ms = elapsed.count();
  save_values(result.names, result.outputs, file, "--output");
  for (std::size_t k = 0; k < result.outputs.size() && !options.expect.empty(); ++k)
    result.comparisons.push_back(compare_with_file(options, result.names[k], k, result.outputs[k]));
  return result;
}

}  // namespace tenon::app
