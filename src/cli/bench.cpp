#include "app/bench.h"

#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "profile/device_peak.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <optional>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct BenchCommandOptions : app::BenchOptions {
  std::string percentiles = "90,99";
};

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

std::string reason_for(const StepTime& step, const app::BenchResult& result) {
  const auto found =
      result.reasons.find({step.value, step.candidate.substr(0, step.candidate.find('#'))});
  return found == result.reasons.end() ? "" : found->second;
}

// The bandwidth limit applies to devices only: a processor's caches exceed its memory bandwidth.
void print_steps(const app::BenchResult& result) {
  const bool has_limit = result.is_on_device;
  std::vector<std::string> titles = {">step",  "name",     "candidate", ">us",
                                     ">share", ">GFLOP/s", ">GB/s"};
  if (has_limit) titles.push_back(">of roofline");
  if (!result.reasons.empty()) titles.emplace_back("reason");
  Table table(titles);
  const auto number = [](double value) {
    return std::to_string(static_cast<std::int64_t>(value + 0.5));
  };
  for (const auto& [position, step, share] : result.steps) {
    std::vector<std::string> row = {std::to_string(position),
                                    step.name,
                                    step.candidate,
                                    number(step.seconds / app::kStepRuns * 1e6),
                                    number(100 * share) + " %",
                                    step.flops > 0 ? number(step.flops / step.seconds / 1e9) : "-",
                                    step.bytes > 0 ? number(step.bytes / step.seconds / 1e9) : "-"};
    if (has_limit)
      row.push_back(
          number(100 * profile::least_seconds(result.peak, step.flops, step.bytes) / step.seconds) +
          " %");
    if (!result.reasons.empty()) row.push_back(reason_for(step, result));
    table.add(row);
  }
  table.print(out());
  out() << "\n";
}

Json steps_json(const app::BenchResult& result) {
  Json json = Json::array();
  for (const auto& [position, step, share] : result.steps) {
    json.push_back({{"step", position},
                    {"name", step.name},
                    {"value", step.value},
                    {"candidate", step.candidate},
                    {"us", step.seconds / app::kStepRuns * 1e6},
                    {"share", share},
                    {"gflops", step.flops / step.seconds / 1e9},
                    {"gb_per_s", step.bytes / step.seconds / 1e9}});
    if (result.is_on_device)
      json.back()["limit_share"] =
          profile::least_seconds(result.peak, step.flops, step.bytes) / step.seconds;
    if (const std::string why = reason_for(step, result); !why.empty()) json.back()["why"] = why;
  }
  return json;
}

Json optional_number(const std::optional<double>& number) {
  return number ? Json(*number) : Json();
}

Json budget_json(const planning::BudgetReport& report) {
  return {{"arena_bytes", report.budget_bytes},
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

Json to_json(const app::BenchResult& result, const std::string& model,
             const std::vector<double>& shares) {
  Json json = {{"model", model},
               {"threads", result.threads},
               {"samples_ms", result.samples_ms},
               {"min_ms", result.sorted_ms.front()},
               {"median_ms", result.median_ms()}};
  for (const double share : shares) json[label_of(share) + "_ms"] = result.percentile_ms(share);
  json.update(
      {{"runs_per_s", 1000 / result.median_ms()},
       {"gflops", optional_number(result.gflops)},
       {"roofline_share", optional_number(result.roofline_share)},
       {"peak_gflops", result.peak.flops_per_s / 1e9},
       {"peak_gb_per_s", result.peak.bytes_per_s / 1e9},
       {"compile_ms", result.compile_ms},
       {"load_ms", result.load_ms},
       {"min_processor_ms",
        std::isfinite(result.least_processor_ms) ? Json(result.least_processor_ms) : Json()},
       {"first_run_ms", result.first_run_ms},
       {"first_output_ns", result.first_output_ns},
       {"arena_bytes", result.arena_bytes},
       {"scratch_bytes", result.scratch_bytes},
       {"pinned_bytes", result.pinned_bytes},
       {"device_bytes", result.device_bytes},
       {"constant_bytes", result.constant_bytes},
       {"peak_rss_kb", result.peak_kilobytes},
       {"run_peak_rss_kb", result.run_peak_bytes / 1024},
       {"version", kVersion}});
  if (result.by_host) {
    json["host_ms"] = app::BenchResult::percentile(result.by_host->sorted_ms, 50);
    json["least_host_ms"] = result.by_host->sorted_ms.front();
    if (result.by_host->contexts > 0)
      json["in_flight"] = {{"contexts", result.by_host->contexts},
                           {"runs_per_s", result.by_host->runs_per_s}};
  }
  if (result.budget) json["budget"] = budget_json(*result.budget);
  return json;
}

void print_result(const app::BenchResult& result, const std::vector<double>& shares) {
  std::vector<std::string> titles = {">runs", ">least ms", ">median ms"};
  std::vector<std::string> row = {std::to_string(result.samples_ms.size()),
                                  rounded(result.sorted_ms.front()), rounded(result.median_ms())};
  for (const double share : shares) {
    titles.push_back(">" + label_of(share) + " ms");
    row.push_back(rounded(result.percentile_ms(share)));
  }
  titles.insert(titles.end(), {">runs/s", ">GFLOP/s", ">of roofline", ">compile ms", ">load ms"});
  row.insert(row.end(),
             {rounded(1000 / result.median_ms()), result.gflops ? rounded(*result.gflops) : "-",
              result.roofline_share ? rounded(100 * *result.roofline_share) + " %" : "-",
              result.is_program ? "-" : rounded(result.compile_ms), rounded(result.load_ms)});
  Table table(titles);
  table.add(row);
  table.print(out());
  out() << "\n"
        << (result.is_on_device ? "the device" : concat(result.threads, " threads; the machine"))
        << " gives " << rounded(result.peak.flops_per_s / 1e9) << " GFLOP/s and "
        << rounded(result.peak.bytes_per_s / 1e9) << " GB/s; arena "
        << format_bytes(result.arena_bytes) << " and scratch "
        << format_bytes(result.scratch_bytes);
  if (const std::uint64_t pinned = result.pinned_bytes; pinned > 0)
    out() << ", " << format_bytes(pinned) << " pinned on the host";
  out() << ", constants " << format_bytes(result.constant_bytes) << ", peak memory "
        << format_bytes(static_cast<std::uint64_t>(result.peak_kilobytes) * 1024) << "\n";
  if (result.by_host) {
    out() << "from the host's memory to the host's: least "
          << rounded(result.by_host->sorted_ms.front()) << " ms, median "
          << rounded(app::BenchResult::percentile(result.by_host->sorted_ms, 50)) << " ms";
    if (result.by_host->contexts > 0)
      out() << "; " << rounded(result.by_host->runs_per_s) << " runs/s with "
            << result.by_host->contexts
            << (result.by_host->contexts == 1 ? " context" : " contexts") << " in flight";
    out() << "\n";
  }
  if (result.budget) {
    out() << "budget: " << to_string(*result.budget) << "; resident while it ran "
          << format_bytes(result.run_peak_bytes) << "\n";
  }
}

int bench(const BenchCommandOptions& options, OutputFormat format) {
  const std::vector<double> shares = parse_percentiles(options.percentiles);
  const app::BenchResult result = app::bench(options, compile_tuned);
  if (format == OutputFormat::Json) {
    Json json = to_json(result, options.model, shares);
    if (options.every_step) json["steps"] = steps_json(result);
    out() << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (options.every_step) print_steps(result);
  print_result(result, shares);
  return 0;
}

}  // namespace

void add_bench(Commands& commands) {
  const auto [app, options] =
      commands.add<BenchCommandOptions>("bench", "Time a model on this machine", bench);
  app.add_option("model", options.model, kModelOrProgramHelp)->required();
  app.add_option("--input", options.inputs, "as for run");
  add_shapes(app, options.shapes);
  add_batch(app, options.batch);
  add_threads(app, options.threads);
  add_trust(app, options.trust_program);
  app.add_option("--cpu", options.cpu, "native, x86-64-v3 or x86-64-v4");
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
  add_no_winograd(app, options.no_winograd);
  add_tuning(app, options.tune);
  add_untuned(app, options.untuned);
  add_preferred(app, options.preferred);
  app.add_flag("--train{sgd}", options.train, "time a training step with this optimizer")
      ->type_name("[=OPTIMIZER]");
  app.add_option("--loss", options.loss, "with --train: as for train");
  app.add_option("--budget", options.budget, kBudgetHelp);
  app.add_flag("--swap", options.swap, kSwapHelp);
  app.add_flag("--split", options.split, kSplitHelp);
  app.add_option("--warm-up", options.warm_up_runs, "runs before the clock starts")
      ->check(whole_number(0, kMostRuns));
  app.add_option("--duration", options.duration_s, "seconds to measure for")
      ->check(positive_number(true));
  app.add_option("--min-iterations", options.min_iterations, "minimum number of runs")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--max-iterations", options.max_iterations, "maximum number of runs")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--iterations", options.iterations, "number of runs, regardless of time")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--contexts", options.contexts,
                 "for a program on a device: number of runs in flight, with copies from and to "
                 "the host (default: 2; 0: not timed)")
      ->check(whole_number(0, 64));
  app.add_option("--percentiles", options.percentiles, "percentiles to show (default: 90,99)");
  app.add_option("--save-inputs", options.save_inputs, "@DIR: write the inputs as .npy");
  app.add_flag("--steps", options.every_step, "print the time of each step");
  app.add_option("--output", options.output,
                 "@DIR: write the outputs as .npy; with --train those of one step, and "
                 "every timed step starts from the same state");
}

}  // namespace tenon::cli
