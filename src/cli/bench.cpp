#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/timed_program.h"
#include "cli/tuning.h"
#include "cli/value_files.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "host/resident.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "models/summary.h"
#include "planning/budget.h"
#include "profile/device_peak.h"
#include "profile/machine_peak.h"
#include "profile/record.h"
#include "train/options.h"

#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

double ms_since(Clock::time_point begin) { return Milliseconds(Clock::now() - begin).count(); }

// CPU time of all threads: not affected by other load on the machine.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

double percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share / 100 * last + 0.5)];
}

// Parses "90,99".
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

// Formats with four significant digits.
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

bool has_symbols(const Program& program) { return !program.symbols.empty(); }

// Returns the work of each node of a dynamic model for these inputs. The program only has symbolic
// amounts.
std::optional<std::vector<models::NodeWork>> work_of(const models::ModelSource& source,
                                                     const std::vector<Datum>& inputs) {
  const Graph graph = driver::run_pipeline(source.graph(), {});
  std::map<std::string, Shape> shapes;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].is_tensor())
      shapes[graph.value(graph.inputs()[k]).name] = inputs[k].tensor().shape();
  }
  return models::work_at(graph, models::symbol_values(graph, shapes));
}

constexpr int kStepRuns = 5;

struct SlowStep {
  std::size_t position = 0;
  StepTime time;     // of all runs
  double share = 0;  // of the time of all steps
};

// Returns steps sorted by time, the longest first, without steps for other extents. For a step of
// unknown work that is all of its node, `work` provides it.
std::vector<SlowStep> ranked_steps(CompiledModel& model,
                                   const std::vector<models::NodeWork>& work) {
  std::vector<StepTime> times = model.timed_steps(kStepRuns);
  std::map<std::string, int> runs;
  for (const StepTime& step : times) runs[step.value] += step.seconds > 0;
  for (StepTime& step : times) {
    const auto node = std::ranges::find(work, step.value, &models::NodeWork::name);
    if (node == work.end() || runs[step.value] != 1) continue;
    if (step.flops == 0) step.flops = kStepRuns * node->flops;
    if (step.bytes == 0) step.bytes = kStepRuns * node->bytes;
  }
  std::vector<SlowStep> steps;
  double total = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    if (times[k].seconds > 0) steps.push_back({k, times[k], 0});
    total += times[k].seconds;
  }
  for (SlowStep& step : steps) step.share = step.time.seconds / total;
  std::stable_sort(steps.begin(), steps.end(), [](const SlowStep& a, const SlowStep& b) {
    return a.time.seconds > b.time.seconds;
  });
  return steps;
}

// Times of a device program as a caller sees them: with inputs and outputs in host memory.
struct HostTimes {
  std::vector<double> sorted_ms;  // of consecutive runs
  std::size_t contexts = 0;       // contexts in flight; 0: not measured
  double runs_per_s = 0;          // with these
};

HostTimes host_times(CompiledModel& model, std::size_t most_runs, double seconds, int contexts) {
  HostTimes times;
  const auto start = Clock::now();
  while (times.sorted_ms.size() < most_runs &&
         (times.sorted_ms.size() < 3 || ms_since(start) < seconds * 1000)) {
    const auto begin = Clock::now();
    model.run_prepared();
    times.sorted_ms.push_back(ms_since(begin));
  }
  std::ranges::sort(times.sorted_ms);
  if (contexts < 1) return times;
  times.contexts = static_cast<std::size_t>(contexts);
  const double run_s = percentile(times.sorted_ms, 50) / 1e3;
  const auto runs =
      std::max(4 * times.contexts, static_cast<std::size_t>(std::min(seconds / run_s, 1e5)));
  times.runs_per_s = static_cast<double>(runs) / model.in_flight(times.contexts).run(runs);
  return times;
}

// Zero if a program runs on a device for which the benchmark cannot be compiled.
profile::MachinePeak device_peak(const Program& program) {
  try {
    return profile::measure_device_peak_for(program);
  } catch (const Error&) {
    return {};
  }
}

// Reason of each kernel choice, by the node's first result and the candidate.
using Reasons = std::map<std::pair<std::string, std::string>, std::string>;

Reasons reasons_of(const driver::CompileRecord& record) {
  Reasons reasons;
  for (const codegen::Decision& decision : record.decisions) {
    const auto accepting = std::ranges::count_if(
        decision.candidates, [](const auto& option) { return option.verdict.accepts; });
    if (!decision.node || accepting < 2) continue;
    const ValueId value = record.graph.node(decision.node).results.front();
    for (const codegen::Version& version : decision.selection.versions) {
      const std::string& name = decision.candidates[version.candidate].name;
      reasons[{record.graph.value(value).name, name}] = decision.selection.why;
    }
  }
  return reasons;
}

std::string reason_for(const StepTime& step, const Reasons& reasons) {
  const auto found = reasons.find({step.value, step.candidate.substr(0, step.candidate.find('#'))});
  return found == reasons.end() ? "" : found->second;
}

// The bandwidth limit applies to devices only: a processor's caches exceed its memory bandwidth.
void print_steps(const std::vector<SlowStep>& steps,
                 const std::optional<profile::MachinePeak>& limit, const Reasons& reasons) {
  std::vector<std::string> titles = {">step",  "name",     "candidate", ">us",
                                     ">share", ">GFLOP/s", ">GB/s"};
  if (limit) titles.push_back(">of roofline");
  if (!reasons.empty()) titles.emplace_back("reason");
  Table table(titles);
  const auto number = [](double value) {
    return std::to_string(static_cast<std::int64_t>(value + 0.5));
  };
  for (const auto& [position, step, share] : steps) {
    std::vector<std::string> row = {std::to_string(position),
                                    step.name,
                                    step.candidate,
                                    number(step.seconds / kStepRuns * 1e6),
                                    number(100 * share) + " %",
                                    step.flops > 0 ? number(step.flops / step.seconds / 1e9) : "-",
                                    step.bytes > 0 ? number(step.bytes / step.seconds / 1e9) : "-"};
    if (limit)
      row.push_back(
          number(100 * profile::least_seconds(*limit, step.flops, step.bytes) / step.seconds) +
          " %");
    if (!reasons.empty()) row.push_back(reason_for(step, reasons));
    table.add(row);
  }
  table.print(out());
  out() << "\n";
}

Json to_json(const std::vector<SlowStep>& steps, const std::optional<profile::MachinePeak>& limit,
             const Reasons& reasons) {
  Json json = Json::array();
  for (const auto& [position, step, share] : steps) {
    json.push_back({{"step", position},
                    {"name", step.name},
                    {"value", step.value},
                    {"candidate", step.candidate},
                    {"us", step.seconds / kStepRuns * 1e6},
                    {"share", share},
                    {"gflops", step.flops / step.seconds / 1e9},
                    {"gb_per_s", step.bytes / step.seconds / 1e9}});
    if (limit)
      json.back()["limit_share"] =
          profile::least_seconds(*limit, step.flops, step.bytes) / step.seconds;
    if (const std::string why = reason_for(step, reasons); !why.empty()) json.back()["why"] = why;
  }
  return json;
}

}  // namespace

int bench(const BenchOptions& options, OutputFormat format) {
  const std::vector<double> shares = parse_percentiles(options.percentiles);
  if (options.min_iterations > options.max_iterations) {
    throw Error("--min-iterations is above --max-iterations", ErrorKind::Usage)
        .got(options.min_iterations, " and ", options.max_iterations);
  }
  prepare_folder(options.save_inputs, "--save-inputs");
  prepare_folder(options.output, "--output");
  const auto begin = Clock::now();
  const models::ModelSource source(options.model);
  std::optional<Program> given = source.program(options.trust_program);
  const bool is_program = given.has_value();
  if (is_program && !options.tune.empty()) {
    throw Error("a program is tuned when it is compiled", ErrorKind::Usage)
        .hint("give the model, or compile it with --tune");
  }
  driver::CompileRequest request = compile_request(options, options.tune);
  request.keeps_record = options.every_step && request.target.is_gpu();
  if (!options.shapes.empty()) request.specialised_shapes = {join(options.shapes, ",")};
  if (is_program && !options.train.empty()) {
    throw Error("a program has no gradient", ErrorKind::Usage).hint("give the model");
  }
  if (is_program && options.batch > 0) {
    throw Error("a program has the batch it was compiled for", ErrorKind::Usage)
        .hint("give the model, or compile it with --batch");
  }
  if (is_program && !options.budget.empty()) {
    throw Error("a program's memory is planned when it is compiled", ErrorKind::Usage)
        .hint("give the model");
  }
  TimedProgram made =
      timed_program(source, std::move(given),
                    {options.batch,
                     options.shapes,
                     options.train,
                     options.loss,
                     {options.budget, {}, options.swap, options.threads, options.split},
                     options.output.empty()},  // written outputs are those of one step
                    request);
  passes::StatefulGraph timed = std::move(made.step);
  const std::unique_ptr<planning::BudgetPlanner>& planner = made.planner;
  Program program = std::move(made.program);
  const double compile_ms = is_program ? 0 : ms_since(begin);
  const Graph ports = input_ports(program);
  const auto load_begin = is_program ? begin : Clock::now();
  auto held = std::make_unique<CompiledModel>(std::move(program), options.threads);
  const double load_ms = ms_since(load_begin);

  std::vector<Datum> inputs =
      models::read_inputs(ports, options.inputs, models::parse_shapes(options.shapes));
  for (passes::State& state : timed.states) {
    inputs[state.input] = state.initial.materialise();
    state.initial = {};
  }
  timed.graph = {};  // it holds the initial values of the states
  save_values(names_of(held->program(), held->program().inputs), inputs, options.save_inputs,
              "--save-inputs");
  const std::int64_t peak_before = peak_kilobytes();
  begin_resident_peak();
  const bool is_dynamic = has_symbols(held->program());
  const bool is_read_again = planner || is_dynamic;
  held->prepare(is_read_again ? inputs : std::exchange(inputs, {}));
  if (planner) {
    // Learns from the second run: the first one touches cold memory.
    std::vector<double> seconds;
    held->run_prepared();
    held->run_prepared(seconds);
    if (planner->learn(seconds)) {
      held.reset();  // two arenas at once would exceed the budget
      held = std::make_unique<CompiledModel>(planner->program(), options.threads);
    }
    // Discards the states of these runs, and the copy of the initial ones.
    held->prepare(is_dynamic ? inputs : std::exchange(inputs, {}));
    begin_resident_peak();
  }
  CompiledModel& model = *held;
  const auto first = Clock::now();
  model.run_prepared();
  const double first_run_ms = ms_since(first);
  const std::int64_t first_output_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
  for (int k = 1; k < options.warm_up_runs; ++k) model.run_prepared();

  const int least_runs = options.iterations > 0 ? options.iterations : options.min_iterations;
  const int most_runs = options.iterations > 0 ? options.iterations : options.max_iterations;
  std::vector<double> samples;
  double least_processor_ms = std::numeric_limits<double>::infinity();
  const auto start = Clock::now();
  while (static_cast<int>(samples.size()) < most_runs &&
         (static_cast<int>(samples.size()) < least_runs ||
          ms_since(start) < options.duration_s * 1000)) {
    const auto run_begin = Clock::now();
    if (model.is_on_device()) {
      samples.push_back(model.executor().replay() * 1e3);  // data on the device stays there
      continue;
    }
    const double processor_begin = processor_ms();
    model.run_prepared();
    samples.push_back(ms_since(run_begin));
    least_processor_ms = std::min(least_processor_ms, processor_ms() - processor_begin);
  }
  save_values(names_of(model.program(), model.program().outputs), model.outputs(), options.output,
              "--output");
  // A training step has its states on the device.
  std::optional<HostTimes> by_host;
  if (model.is_on_device() && options.train.empty())
    by_host = host_times(model, samples.size(), options.duration_s / 2, options.contexts);

  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  std::optional<std::vector<models::NodeWork>> work;
  if (is_dynamic && !is_program) work = work_of(source, inputs);
  std::optional<double> flops;
  if (!is_dynamic) flops = model.totals().flops;
  if (work)
    flops =
        std::accumulate(work->begin(), work->end(), 0.0,
                        [](double sum, const models::NodeWork& node) { return sum + node.flops; });
  const double median = percentile(sorted, 50);
  const std::uint64_t run_peak_memory = resident_peak_bytes();
  const std::int64_t peak_memory = std::max(
      peak_before, peak_kilobytes());  // before measuring the machine peak, which takes memory
  const profile::MachinePeak peak = model.is_on_device()
                                        ? device_peak(model.program())
                                        : profile::measure_machine_peak(model.thread_count());
  const std::optional<profile::MachinePeak> limit =
      model.is_on_device() ? std::optional(peak) : std::nullopt;
  std::optional<double> gflops, roofline;
  if (flops) {
    gflops = *flops / median / 1e6;
    roofline = profile::least_ms(peak, *flops, model.totals().constant_bytes) / median;
  }
  if (format == OutputFormat::Json) {
    Json json = {{"model", options.model},
                 {"threads", model.thread_count()},
                 {"samples_ms", samples},
                 {"min_ms", sorted.front()},
                 {"median_ms", median}};
    for (const double share : shares) json[label_of(share) + "_ms"] = percentile(sorted, share);
    json.update({{"runs_per_s", 1000 / median},
                 {"gflops", gflops ? Json(*gflops) : Json()},
                 {"roofline_share", roofline ? Json(*roofline) : Json()},
                 {"peak_gflops", peak.flops_per_s / 1e9},
                 {"peak_gb_per_s", peak.bytes_per_s / 1e9},
                 {"compile_ms", compile_ms},
                 {"load_ms", load_ms},
                 {"min_processor_ms",
                  std::isfinite(least_processor_ms) ? Json(least_processor_ms) : Json()},
                 {"first_run_ms", first_run_ms},
                 {"first_output_ns", first_output_ns},
                 {"arena_bytes", model.executor().arena_bytes()},
                 {"scratch_bytes", model.executor().scratch_bytes()},
                 {"pinned_bytes", model.runner().pinned_bytes()},
                 {"device_bytes", model.runner().device_bytes()},
                 {"constant_bytes", model.totals().constant_bytes},
                 {"peak_rss_kb", peak_memory},
                 {"run_peak_rss_kb", run_peak_memory / 1024},
                 {"version", kVersion}});
    if (by_host) {
      json["host_ms"] = percentile(by_host->sorted_ms, 50);
      json["least_host_ms"] = by_host->sorted_ms.front();
      if (by_host->contexts > 0)
        json["in_flight"] = {{"contexts", by_host->contexts}, {"runs_per_s", by_host->runs_per_s}};
    }
    if (planner) {
      const planning::BudgetReport& report = planner->report();
      json["budget"] = {{"arena_bytes", report.budget_bytes},
                        {"plain_arena_bytes", report.plain_arena_bytes},
                        {"outside_bytes", report.outside_bytes},
                        {"steps", report.step_count},
                        {"repeated_steps", report.repeated_count},
                        {"parts", report.micro_batches},
                        {"swapped_bytes", report.swapped_bytes},
                        {"swap_place", report.swap_place},
                        {"swap_place_bytes", report.swap_place_bytes},
                        {"extra_time", report.extra_time()},
                        {"plain_ms", 1e3 * report.plain_seconds},
                        {"planned_ms", 1e3 * report.seconds}};
    }
    if (options.every_step)
      json["steps"] = to_json(ranked_steps(model, work.value_or(std::vector<models::NodeWork>{})),
                              limit, reasons_of(made.record));
    out() << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (options.every_step) {
    print_steps(ranked_steps(model, work.value_or(std::vector<models::NodeWork>{})), limit,
                reasons_of(made.record));
  }
  std::vector<std::string> titles = {">runs", ">least ms", ">median ms"};
  std::vector<std::string> row = {std::to_string(samples.size()), rounded(sorted.front()),
                                  rounded(median)};
  for (const double share : shares) {
    titles.push_back(">" + label_of(share) + " ms");
    row.push_back(rounded(percentile(sorted, share)));
  }
  titles.insert(titles.end(), {">runs/s", ">GFLOP/s", ">of roofline", ">compile ms", ">load ms"});
  row.insert(row.end(), {rounded(1000 / median), gflops ? rounded(*gflops) : "-",
                         roofline ? rounded(100 * *roofline) + " %" : "-",
                         is_program ? "-" : rounded(compile_ms), rounded(load_ms)});
  Table table(titles);
  table.add(row);
  table.print(out());
  out() << "\n"
        << (model.is_on_device() ? "the device"
                                 : concat(model.thread_count(), " threads; the machine"))
        << " gives " << rounded(peak.flops_per_s / 1e9) << " GFLOP/s and "
        << rounded(peak.bytes_per_s / 1e9) << " GB/s; arena "
        << format_bytes(model.executor().arena_bytes()) << " and scratch "
        << format_bytes(model.executor().scratch_bytes());
  if (const std::uint64_t pinned = model.runner().pinned_bytes(); pinned > 0)
    out() << ", " << format_bytes(pinned) << " pinned on the host";
  out() << ", constants " << format_bytes(model.totals().constant_bytes) << ", peak memory "
        << format_bytes(static_cast<std::uint64_t>(peak_memory) * 1024) << "\n";
  if (by_host) {
    out() << "from the host's memory to the host's: least " << rounded(by_host->sorted_ms.front())
          << " ms, median " << rounded(percentile(by_host->sorted_ms, 50)) << " ms";
    if (by_host->contexts > 0)
      out() << "; " << rounded(by_host->runs_per_s) << " runs/s with " << by_host->contexts
            << (by_host->contexts == 1 ? " context" : " contexts") << " in flight";
    out() << "\n";
  }
  if (planner) {
    out() << "budget: " << to_string(planner->report()) << "; resident while it ran "
          << format_bytes(run_peak_memory) << "\n";
  }
  return 0;
}

}  // namespace tenon::cli
