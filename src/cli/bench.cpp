#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "cli/value_files.h"
#include "driver/compiled.h"
#include "driver/inputs.h"
#include "driver/machine_peak.h"
#include "driver/model.h"
#include "program/file.h"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

namespace tenon::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

double ms_since(Clock::time_point begin) { return Milliseconds(Clock::now() - begin).count(); }

double percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share / 100 * last + 0.5)];
}

// "90,99" as numbers.
std::vector<double> parse_percentiles(const std::string& text) {
  std::vector<double> shares;
  for (const std::string& part : split(text, ',')) {
    const std::optional<double> share = parse_real(part);
    if (!share || !(*share >= 0 && *share <= 100)) {
      throw Error("no percentile", ErrorKind::Usage)
          .expected("numbers from 0 to 100, as in 50,90,99.9")
          .got(part);
    }
    shares.push_back(*share);
  }
  return shares;
}

std::string label_of(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "p%g", share);
  return text;
}

// Four digits that matter.
std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f",
                value >= 1000  ? 0
                : value >= 100 ? 1
                : value >= 10  ? 2
                : value >= 1   ? 3
                               : 4,
                value);
  return text;
}

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

// Steps by the time they take, the longest first.
void print_steps(CompiledModel& model) {
  constexpr int runs = 5;
  const std::vector<StepTime> steps = model.timed_steps(runs);
  std::vector<std::size_t> order(steps.size());
  double total = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    order[k] = k;
    total += steps[k].seconds;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return steps[a].seconds > steps[b].seconds; });
  Table table({">step", "name", "candidate", ">us", ">share", ">GFLOP/s", ">GB/s"});
  const auto number = [](double value) {
    return std::to_string(static_cast<std::int64_t>(value + 0.5));
  };
  for (const std::size_t k : order) {
    const StepTime& step = steps[k];
    if (step.seconds == 0) continue;  // it is for other extents
    table.add({std::to_string(k), step.name, step.candidate, number(step.seconds / runs * 1e6),
               number(100 * step.seconds / total) + " %", number(step.flops / step.seconds / 1e9),
               number(step.bytes / step.seconds / 1e9)});
  }
  table.print(std::cout);
  std::cout << "\n";
}

}  // namespace

int bench(const BenchOptions& options, OutputFormat format) {
  const std::vector<double> shares = parse_percentiles(options.percentiles);
  const auto begin = Clock::now();
  const bool is_program = is_program_file(options.model);
  if (is_program && !options.tune.empty()) {
    throw Error("a program is tuned when it is compiled", ErrorKind::Usage).hint("give the model, or compile it with --tune");
  }
  TuningOptions tuning{options.cpu, !options.no_winograd, options.threads, options.tune, options.untuned};
  if (!options.shapes.empty()) tuning.hot_shapes = {join(options.shapes, ",")};
  Program program = is_program ? read_program(options.model) : compile_tuned(load_model(options.model), tuning);
  const double compile_ms = is_program ? 0 : ms_since(begin);
  const Graph ports = input_ports(program);
  const auto load_begin = is_program ? begin : Clock::now();
  CompiledModel model(std::move(program), options.threads);
  const double load_ms = ms_since(load_begin);

  const std::vector<Datum> inputs =
      read_inputs(ports, options.inputs, parse_shapes(options.shapes));
  save_values(names_of(model.program(), model.program().inputs), inputs, options.save_inputs,
              "--save-inputs");
  model.prepare(inputs);
  const auto first = Clock::now();
  model.run_prepared();
  const double first_run_ms = ms_since(first);
  const std::int64_t first_output_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  for (int k = 1; k < options.warm_up_runs; ++k) model.run_prepared();

  const int least_runs = options.iterations > 0 ? options.iterations : options.min_iterations;
  const int most_runs = options.iterations > 0 ? options.iterations : options.max_iterations;
  std::vector<double> samples;
  const auto start = Clock::now();
  while (static_cast<int>(samples.size()) < most_runs &&
         (static_cast<int>(samples.size()) < least_runs ||
          ms_since(start) < options.duration_s * 1000)) {
    const auto run_begin = Clock::now();
    model.run_prepared();
    samples.push_back(ms_since(run_begin));
  }
  save_values(names_of(model.program(), model.program().outputs), model.outputs(), options.output,
              "--output");

  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const double flops = model.totals().flops;
  const double median = percentile(sorted, 50);
  const std::int64_t peak_memory =
      peak_kilobytes();  // before the machine's peak is measured, which takes memory
  const MachinePeak peak = measure_machine_peak(model.thread_count());
  const double roofline = least_ms(peak, flops, model.totals().constant_bytes) / median;
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json = {{"model", options.model},
                                   {"threads", model.thread_count()},
                                   {"samples_ms", samples},
                                   {"min_ms", sorted.front()},
                                   {"median_ms", median}};
    for (const double share : shares) json[label_of(share) + "_ms"] = percentile(sorted, share);
    json.update({{"runs_per_s", 1000 / median},
                 {"gflops", flops / median / 1e6},
                 {"roofline_share", roofline},
                 {"peak_gflops", peak.flops_per_s / 1e9},
                 {"peak_gb_per_s", peak.bytes_per_s / 1e9},
                 {"compile_ms", compile_ms},
                 {"load_ms", load_ms},
                 {"first_run_ms", first_run_ms},
                 {"first_output_ns", first_output_ns},
                 {"arena_bytes", model.arena_bytes()},
                 {"scratch_bytes", model.scratch_bytes()},
                 {"constant_bytes", model.totals().constant_bytes},
                 {"peak_rss_kb", peak_memory},
                 {"version", "0.1"}});
    std::cout << json.dump() << "\n";
    return 0;
  }
  if (options.every_step) print_steps(model);
  std::vector<std::string> titles = {">runs", ">least ms", ">median ms"};
  std::vector<std::string> row = {std::to_string(samples.size()), rounded(sorted.front()),
                                  rounded(median)};
  for (const double share : shares) {
    titles.push_back(">" + label_of(share) + " ms");
    row.push_back(rounded(percentile(sorted, share)));
  }
  titles.insert(titles.end(), {">runs/s", ">GFLOP/s", ">of roofline", ">compile ms", ">load ms"});
  row.insert(row.end(),
             {rounded(1000 / median), rounded(flops / median / 1e6), rounded(100 * roofline) + " %",
              is_program ? "-" : rounded(compile_ms), rounded(load_ms)});
  Table table(titles);
  table.add(row);
  table.print(std::cout);
  std::cout << "\n"
            << model.thread_count() << " threads; the machine gives "
            << rounded(peak.flops_per_s / 1e9) << " GFLOP/s and " << rounded(peak.bytes_per_s / 1e9)
            << " GB/s; arena " << format_bytes(model.arena_bytes()) << " and scratch "
            << format_bytes(model.scratch_bytes()) << ", constants "
            << format_bytes(model.totals().constant_bytes) << ", peak memory "
            << format_bytes(static_cast<std::uint64_t>(peak_memory) * 1024) << "\n";
  return 0;
}

}  // namespace tenon::cli
