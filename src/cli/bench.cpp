#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "driver/compiled.h"
#include "driver/inputs.h"
#include "driver/model.h"
#include "frontends/numpy/npy.h"
#include "program/file.h"

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

double ms_since(Clock::time_point begin) { return Milliseconds(Clock::now() - begin).count(); }

double percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last + 0.5)];
}

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// A graph that has a program's inputs, so that they are read the same way as a model's.
Graph inputs_of(const Program& program) {
  Graph graph(program.name);
  for (const std::uint32_t id : program.inputs) {
    const Program::Buffer& buffer = program.buffers[id];
    TensorType type;
    type.dtype = *parse_dtype(buffer.dtype);
    for (const Extent& dim : buffer.dims) {
      const bool is_symbol = dim.steps().size() == 1 && dim.steps().front().op == Extent::Op::Symbol;
      if (is_symbol) {
        const Program::Symbol& symbol = program.symbols[static_cast<std::size_t>(dim.steps().front().number)];
        type.dims.push_back(Dim::symbol(symbol.name, {symbol.lo, symbol.hi}));
      } else {
        type.dims.push_back(dim.number());
      }
    }
    graph.add_input(buffer.name, type);
  }
  return graph;
}

// Writes values as NAME.npy into the folder that an option names as @DIR.
void save_values(const Program& program, const std::vector<std::uint32_t>& ids, const std::vector<Datum>& values,
                 const std::string& option) {
  if (option.empty()) return;
  const std::string folder = option.substr(option.rfind('@', 0) == 0 ? 1 : 0);
  std::filesystem::create_directories(folder);
  for (std::size_t k = 0; k < values.size(); ++k) {
    const std::string file = file_name_of(program.buffers[ids[k]].name) + ".npy";
    numpy::write_npy_file(values[k].tensor(), folder + "/" + file);
  }
}

// Steps by the time they take, the longest first.
void print_steps(CompiledModel& model) {
  constexpr int runs = 5;
  std::vector<double> seconds;
  for (int k = 0; k < runs; ++k) model.run_prepared(seconds);
  const auto& steps = model.program().steps;
  std::vector<std::size_t> order(steps.size());
  double total = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    order[k] = k;
    total += seconds[k];
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return seconds[a] > seconds[b]; });
  Table table({">step", "name", "kernel", ">us", ">share", ">GFLOP/s", ">GB/s"});
  const auto number = [](double value) { return std::to_string(static_cast<std::int64_t>(value + 0.5)); };
  for (const std::size_t k : order) {
    const double each = seconds[k] / runs;
    table.add({std::to_string(k), steps[k].name, model.program().kernels[steps[k].kernel].symbol, number(each * 1e6),
               number(100 * seconds[k] / total) + " %", number(steps[k].flops / each / 1e9),
               number(steps[k].bytes / each / 1e9)});
  }
  table.print(std::cout);
  std::cout << "\n";
}

}  // namespace

int bench(const BenchOptions& options, OutputFormat format) {
  const auto begin = Clock::now();
  const bool is_program = is_program_file(options.model);
  Program program = is_program ? read_program(options.model) : compile_graph(load_model(options.model), options.cpu, !options.no_winograd);
  require_target(program);
  const Graph ports = inputs_of(program);
  CompiledModel model(std::move(program), options.threads);
  const double load_ms = ms_since(begin);

  const std::vector<Datum> inputs = read_inputs(ports, options.inputs, parse_shapes(options.shapes));
  save_values(model.program(), model.program().inputs, inputs, options.save_inputs);
  model.prepare(inputs);
  const auto first = Clock::now();
  model.run_prepared();
  const double first_run_ms = ms_since(first);
  const std::int64_t first_output_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  for (int k = 1; k < options.warm_up_runs; ++k) model.run_prepared();

  std::vector<double> samples;
  const auto start = Clock::now();
  while (static_cast<int>(samples.size()) < options.max_iterations &&
         (static_cast<int>(samples.size()) < options.min_iterations || ms_since(start) < options.duration_s * 1000)) {
    const auto run_begin = Clock::now();
    model.run_prepared();
    samples.push_back(ms_since(run_begin));
  }
  save_values(model.program(), model.program().outputs, model.outputs(), options.output);

  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  double flops = 0;
  for (const Program::Step& step : model.program().steps) flops += step.flops;
  const double median = percentile(sorted, 0.5);
  if (format == OutputFormat::Json) {
    std::cout << nlohmann::ordered_json{{"model", options.model},
                                        {"samples_ms", samples},
                                        {"min_ms", sorted.front()},
                                        {"median_ms", median},
                                        {"p90_ms", percentile(sorted, 0.9)},
                                        {"p99_ms", percentile(sorted, 0.99)},
                                        {"gflops", flops / median / 1e6},
                                        {"load_ms", load_ms},
                                        {"first_run_ms", first_run_ms},
                                        {"first_output_ns", first_output_ns},
                                        {"arena_bytes", model.context().arena_bytes()},
                                        {"constant_bytes", model.program().constant_bytes},
                                        {"peak_rss_kb", peak_kilobytes()},
                                        {"version", "0.1"}}
                     .dump()
              << "\n";
    return 0;
  }
  if (options.every_step) print_steps(model);
  const auto number = [](double value) { return format_real(static_cast<float>(value)); };
  Table table({">runs", ">least ms", ">median ms", ">p90 ms", ">p99 ms", ">GFLOP/s", ">load ms", ">arena", ">constants", ">peak memory"});
  table.add({std::to_string(samples.size()), number(sorted.front()), number(median), number(percentile(sorted, 0.9)),
             number(percentile(sorted, 0.99)), number(flops / median / 1e6), number(load_ms),
             format_bytes(model.context().arena_bytes()), format_bytes(model.program().constant_bytes),
             format_bytes(static_cast<std::uint64_t>(peak_kilobytes()) * 1024)});
  table.print(std::cout);
  return 0;
}

}  // namespace tenon::cli
