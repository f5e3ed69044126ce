#include "cli/tuning.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/table.h"
#include "driver/inputs.h"
#include "driver/pipeline.h"
#include "driver/tuning/tuner.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>

namespace tenon::cli {
namespace {

codegen::CompileOptions compile_options(const TuningOptions& options, const Graph& graph) {
  codegen::CompileOptions settings;
  settings.device = codegen::cuda::parse_target(options.cpu);
  if (settings.device) {
    settings.device->allows_tf32 = options.precision == "tf32";
  } else {
    settings.target.cpu = options.cpu;
  }
  settings.allow_winograd = options.allow_winograd;
  for (const std::string& text : options.hot_shapes) {
    DimBindings values = symbol_values(graph, parse_shapes({text}));
    if (!values.empty()) settings.hot_values.push_back(std::move(values));
  }
  return settings;
}

void warn(const Error& error, const char* what) { std::cerr << "warning: " << error.what() << "\n  " << what << "\n"; }

// What the cache knows. Where the user's cannot be used, work goes on with one that is forgotten.
std::optional<TuningCache> open_cache(bool writes) {
  const std::optional<std::string> path = tuning_cache_path();
  if (!path) {
    std::cerr << "note: no home folder, so no tuning cache; XDG_CACHE_HOME says where it may be\n";
    if (!writes) return std::nullopt;
    return TuningCache();
  }
  std::error_code unreadable;  // as good as none
  if (!writes && !std::filesystem::exists(*path, unreadable)) return std::nullopt;
  try {
    return TuningCache(*path, writes ? TuningCache::Access::Write : TuningCache::Access::Read);
  } catch (const Error& error) {
    warn(error, writes ? "going on without it: timings are forgotten at the end" : "going on without it: estimates decide");
    if (!writes) return std::nullopt;
    return TuningCache();
  }
}

std::string counted(std::size_t count) { return concat(count, count == 1 ? " kernel" : " kernels"); }

std::string in_words(const TuneReport& report, double seconds) {
  std::string text = concat("tuning: ", counted(report.timed), " timed in ", static_cast<std::int64_t>(std::ceil(seconds)),
                            " s, ", report.known, " known before");
  if (report.failed > 0) text += concat(", ", report.failed, " that made-up data cannot run");
  if (report.left() == 0) return text;
  return concat(text, report.was_interrupted ? "; interrupted: " : "; time is up: ", report.left(),
                " left to estimates. What was timed is kept, and tuning again goes on from there");
}

TuneReport tune_into(TuningCache& cache, const Graph& graph, const TuningOptions& options) {
  const Interrupt interrupt;
  Progress progress("tuning kernels");
  TuneOptions settings;
  settings.compile = compile_options(options, graph);
  settings.threads = options.threads;
  settings.seconds = tuning_seconds(options.tune);
  settings.is_interrupted = [] { return Interrupt::is_asked(); };
  settings.on_kernel = [&](std::size_t done, std::size_t total, const std::string&) { progress.update(done, total); };
  return tune(graph, cache, settings);
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

std::optional<TuningCache> known_timings() { return open_cache(false); }

double tuning_seconds(const std::string& text) {
  if (text.empty() || text == "true") return std::numeric_limits<double>::infinity();
  const std::optional<double> seconds = parse_real(text);
  if (!seconds || !(*seconds > 0)) {
    throw Error("no time to tune for", ErrorKind::Usage).expected("--tune or --tune=SECONDS").got(text);
  }
  return *seconds;
}

namespace {

// Calls `use` with the graph after its passes and with options that choose what is known to be fastest.
template <class Use>
auto with_choices(Graph graph, const TuningOptions& options, const Use& use) {
  if (options.untuned && !options.tune.empty()) {
    throw Error("--tune and --untuned ask for opposite things", ErrorKind::Usage);
  }
  tuning_seconds(options.tune);
  PipelineOptions pipeline = pipeline_for(options.cpu, options.precision);
  if (options.record != nullptr) {
    pipeline.pass_options.journal = &options.record->journal;
    pipeline.on_pass = [&](const PassReport& report, const Graph&) { options.record->passes.push_back(report); };
  }
  graph = run_pipeline(std::move(graph), pipeline);
  codegen::CompileOptions settings = compile_options(options, graph);
  if (options.record != nullptr) {
    options.record->graph = graph;
    settings.decisions = &options.record->decisions;
  }
  // What a device's libraries offer is timed where the device is, when shapes are bound.
  if (settings.device) return use(graph, settings);
  std::optional<TuningCache> cache = options.untuned ? std::nullopt : open_cache(!options.tune.empty());
  if (cache && !options.tune.empty()) {
    const auto begin = std::chrono::steady_clock::now();
    const TuneReport report = tune_into(*cache, graph, options);
    std::cerr << in_words(report, seconds_since(begin)) << "\n";
  }
  if (cache) {
    // A file that is damaged within is found out only where it is read.
    const TuningPlace place = tuning_place(settings.target, options.threads);
    settings.choose = [choose = tuned_choice(*cache, place), is_bad = std::make_shared<bool>(false)](
                          const codegen::Decision& decision) -> std::optional<codegen::Selection> {
      if (*is_bad) return std::nullopt;
      try {
        return choose(decision);
      } catch (const Error& error) {
        warn(error, "going on without it: estimates decide");
        *is_bad = true;
        return std::nullopt;
      }
    };
  }
  return use(graph, settings);
}

}  // namespace

Program compile_tuned(Graph graph, const TuningOptions& options) {
  return with_choices(std::move(graph), options, [](const Graph& made, const codegen::CompileOptions& settings) {
    return codegen::compile(made, settings);
  });
}

std::string print_tuned(Graph graph, const TuningOptions& options) {
  return with_choices(std::move(graph), options, [](const Graph& made, const codegen::CompileOptions& settings) {
    return codegen::print_code(made, settings);
  });
}

std::vector<codegen::Decision> decide_tuned(Graph graph, const TuningOptions& options) {
  return with_choices(std::move(graph), options, [](const Graph& made, const codegen::CompileOptions& settings) {
    return decide_nodes(made, settings);
  });
}

std::string tune_graph(const Graph& graph, const TuningOptions& options) {
  std::optional<TuningCache> cache = open_cache(true);
  const auto begin = std::chrono::steady_clock::now();
  const TuneReport report = tune_into(*cache, graph, options);
  return in_words(report, seconds_since(begin));
}

}  // namespace tenon::cli
