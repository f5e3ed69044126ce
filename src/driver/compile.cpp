#include "driver/compile.h"

#include "base/error.h"
#include "base/internal_report.h"
#include "base/text.h"
#include "driver/pipeline.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "models/weights.h"
#include "program/text.h"
#include "runtime/processors.h"
#include "tune/device_tuning.h"
#include "tune/preferred.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

namespace tenon::driver {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kEstimates = "going on without it: estimates decide";

void note(const CompileRequest& request, const std::string& text) {
  if (request.on_notice) request.on_notice(text);
}
std::string warning_text(const Error& error, std::string_view what) {
  return concat("warning: ", error.what(), "\n  ", what);
}
void warn(const CompileRequest& request, const Error& error, std::string_view what) {
  note(request, warning_text(error, what));
}

auto fallback_warning(std::function<void(const std::string&)> note) {
  return [note = std::move(note)](const InternalError& error, std::string_view alternative) {
    note(concat("warning: ", report(error), "\n  ", alternative));
  };
}

codegen::CompileOptions options_of(const CompileRequest& request, const Graph& graph) {
  codegen::CompileOptions options = target_options(request.target);
  if (options.on_fallback && request.on_notice)
    options.on_fallback = fallback_warning(request.on_notice);
  static_cast<codegen::CompileSettings&>(options) = request;
  options.threads = request.threads > 0 ? request.threads : usable_threads();
  for (const std::string& text : request.specialised_shapes) {
    DimBindings values = models::symbol_values(graph, models::parse_shapes({text}));
    if (!values.empty()) options.specialised_shapes.push_back(std::move(values));
  }
  return options;
}

tune::TuneReport tune_into(tune::TuningCache& cache, const Graph& graph,
                           const CompileRequest& request) {
  tune::TuneOptions options;
  options.compile = options_of(request, graph);
  options.threads = request.threads;
  if (request.tune_seconds) options.seconds = *request.tune_seconds;
  options.is_interrupted = request.is_interrupted;
  if (request.on_kernel_timed) {
    options.on_kernel = [&](std::size_t done, std::size_t total, const std::string&) {
      request.on_kernel_timed(done, total);
    };
  }
  const auto begin = Clock::now();
  const tune::TuneReport report = tune::tune(graph, cache, options);
  if (request.on_tuned)
    request.on_tuned(report, std::chrono::duration<double>(Clock::now() - begin).count());
  return report;
}

// Opens the tuning cache of a request; null if it is absent or not wanted.
std::shared_ptr<tune::TuningCache> cache_for(const CompileRequest& request) {
  if (request.is_untuned) return nullptr;
  std::optional<tune::TuningCache> opened =
      open_tuning_cache(request.tune_seconds.has_value(), request);
  return opened ? std::make_shared<tune::TuningCache>(std::move(*opened)) : nullptr;
}

// Applies tuned library algorithms. They are timed on the device of this machine; without that
// device the libraries choose by their own heuristics.
void take_tuned_candidates(Program& program, tune::TuningCache& cache,
                           const CompileRequest& request, bool times) {
  const auto begin = Clock::now();
  try {
    const tune::TuneReport report = tune::tune_on_device(cache, program, times);
    if (report.timed + report.failed > 0 && request.on_tuned)
      request.on_tuned(report, std::chrono::duration<double>(Clock::now() - begin).count());
  } catch (const Error& error) {
    if (times) throw;
    if (error.kind() != ErrorKind::Device) warn(request, error, kEstimates);
  }
}

// Chooses kernels by the tuning cache's timings for this processor, or for the device of this
// machine.
tune::KernelChoice known_choice(const codegen::CompileOptions& options,
                                const CompileRequest& request,
                                const std::shared_ptr<const tune::TuningCache>& cache) {
  tune::TuningPlace place;
  try {
    place = tune::tuning_place(*options.target, request.threads);
  } catch (const Error& error) {
    if (request.tune_seconds || error.kind() != ErrorKind::Device) throw;
    return {};  // no device
  }
  // Damage inside a file is only detected when it is read.
  return
      [on_notice = request.on_notice, cache, choose = tune::tuned_choice(*cache, std::move(place)),
       is_bad = std::make_shared<bool>(false)](
          const codegen::Decision& decision) -> std::optional<codegen::Selection> {
        if (*is_bad) return std::nullopt;
        try {
          return choose(decision);
        } catch (const Error& error) {
          if (on_notice) on_notice(warning_text(error, kEstimates));
          *is_bad = true;
          return std::nullopt;
        }
      };
}

// Makes the options choose preferred candidates first, then the fastest ones of the cache.
void choose_known(codegen::CompileOptions& options, const CompileRequest& request,
                  const std::shared_ptr<const tune::TuningCache>& cache) {
  tune::require_candidate_names(request.preferred, *options.target);
  if (cache) options.choose = known_choice(options, request, cache);
  if (!request.preferred.empty())
    options.choose = tune::preferred_choice(request.preferred, std::move(options.choose));
}

// Result of the passes, and how to compile it.
struct PreparedModel {
  Graph graph;
  // These choose the fastest known kernels.
  codegen::CompileOptions options;
  // May be null.
  std::shared_ptr<tune::TuningCache> cache;
  // The device's library algorithms remain to be timed.
  bool times_libraries = false;
  std::vector<PassReport> passes;
  passes::Remarks remarks;
};

PreparedModel prepare(Graph graph, const CompileRequest& request,
                      const std::string& stop_after = "") {
  if (request.is_untuned && request.tune_seconds) {
    throw Error("--tune and --untuned ask for opposite things", ErrorKind::Usage);
  }
  const std::shared_ptr<const Target> target = make_target(request.target);
  PipelineOptions passes = pipeline_for(*target, request.target.precision);
  serve(passes, request.passes, target->nest_pass_list());
  passes.stop_after = stop_after;
  PreparedModel made;
  if (request.keeps_record) passes.pass_options.remarks = &made.remarks;
  const auto& on_stage = request.passes.on_stage;
  if (request.keeps_record || on_stage) {
    passes.on_pass = [&](const PassReport& report, const Graph& after) {
      made.passes.push_back(report);
      if (on_stage) on_stage({StageText::Kind::Graph, report.pass, print(after)});
    };
  }
  made.graph = run_pipeline(std::move(graph), passes);
  made.options = options_of(request, made.graph);
  made.cache = cache_for(request);
  if (request.tune_seconds)
    made.times_libraries = tune_into(*made.cache, made.graph, request).left() == 0;
  choose_known(made.options, request, made.cache);
  return made;
}

}  // namespace

codegen::CompileOptions target_options(const TargetSpec& target) {
  codegen::CompileOptions options;
  options.target = make_target(target);
  if (std::getenv("TENON_STRICT") == nullptr)
    options.on_fallback =
        fallback_warning([](const std::string& text) { std::cerr << text << "\n"; });
  return options;
}

codegen::CompileOptions cpu_options(const std::string& target) {
  return target_options(parse_target(target));
}

codegen::CompileOptions known_options(const Graph& graph, const CompileRequest& request) {
  codegen::CompileOptions options = options_of(request, graph);
  choose_known(options, request, cache_for(request));
  return options;
}

std::optional<tune::TuningCache> open_tuning_cache(bool writes, const CompileRequest& request) {
  const std::optional<std::string> path = tune::tuning_cache_path();
  if (!path) {
    note(request, "note: no home folder, so no tuning cache; XDG_CACHE_HOME says where it may be");
    if (!writes) return std::nullopt;
    return tune::TuningCache();
  }
  std::error_code unreadable;  // same as a missing file
  if (!writes && !std::filesystem::exists(*path, unreadable)) return std::nullopt;
  try {
    return tune::TuningCache(
        *path, writes ? tune::TuningCache::Mode::Write : tune::TuningCache::Mode::Read);
  } catch (const Error& error) {
    warn(request, error,
         writes ? "going on without it: timings are forgotten at the end" : kEstimates);
    if (!writes) return std::nullopt;
    return tune::TuningCache();
  }
}

CompileRecord compile_model(Graph graph, const CompileRequest& request) {
  if (request.swappable_weights) {
    models::OpenWeights opened = models::open_weights(std::move(graph), *request.swappable_weights);
    CompileRequest rest = request;
    rest.swappable_weights.reset();
    CompileRecord record = compile_model(opened.graph, rest);
    record.program = models::close_weights(std::move(record.program), opened);
    return record;
  }
  PreparedModel model = prepare(std::move(graph), request);
  NestObserver nests(model.options.target->nest_pass_list(), request.passes);
  model.options.nest_passes = nests.options();
  model.options.keeps_tasks = request.passes.on_stage != nullptr;
  CompileRecord record{compile_verified(model.graph, model.options),
                       {},
                       std::move(model.passes),
                       request.passes.reports_nests ? nests.reports() : std::vector<PassReport>(),
                       std::move(model.remarks)};
  nests.emit();
  if (const auto& on_stage = request.passes.on_stage) {
    on_stage({StageText::Kind::Tasks, "tasks", to_string(*record.tasks)});
    on_stage({StageText::Kind::Plan, "plan", plan_text(record.program)});
    on_stage({StageText::Kind::Program, "program", to_string(record.program)});
  }
  if (request.target.is_gpu() && model.cache)
    take_tuned_candidates(record.program, *model.cache, request, model.times_libraries);
  if (request.keeps_record) record.graph = std::move(model.graph);
  return record;
}

Program compile_graph(Graph graph, const TargetSpec& target, bool allow_winograd) {
  CompileRequest request;
  request.target = target;
  request.allow_winograd = allow_winograd;
  request.is_untuned = true;
  return compile_model(std::move(graph), request).program;
}

std::vector<ListedPass> list_passes(const CompileRequest& request) {
  std::vector<ListedPass> list;
  const std::shared_ptr<const Target> target = make_target(request.target);
  for (PassPosition& pass : positions_for(*target, request.target.precision))
    list.push_back({std::move(pass.name), false, std::move(pass.reason)});
  for (const nests::NestPassInfo& pass : target->nest_pass_list())
    list.push_back({std::string(pass.name), true, std::string(pass.reason)});
  return list;
}

void run_stages(Graph graph, const CompileRequest& request, const std::string& stop_after) {
  const std::shared_ptr<const Target> target = make_target(request.target);
  const PipelineOptions passes = pipeline_for(*target, request.target.precision);
  require_pass(stop_after, passes, target->nest_pass_list(), "--stop-after");
  const bool is_of_graphs = std::ranges::find(passes.passes, stop_after) != passes.passes.end();
  PreparedModel model = prepare(std::move(graph), request, is_of_graphs ? stop_after : "");
  if (is_of_graphs) return;
  PassServices services = request.passes;
  if (const auto& on_stage = request.passes.on_stage) {
    services.on_stage = [&, is_over = false](const StageText& stage) mutable {
      if (!is_over) on_stage(stage);
      is_over = is_over || stage.name == stop_after;
    };
  }
  NestObserver nests(model.options.target->nest_pass_list(), services);
  model.options.nest_passes = nests.options();
  codegen::decide(model.graph, model.options);
  nests.emit();
}

std::string print_model(Graph graph, const CompileRequest& request, codegen::CompileStage stage) {
  const PreparedModel model = prepare(std::move(graph), request);
  return codegen::print_code(model.graph, model.options, stage);
}

std::vector<codegen::Decision> decide_kernels(Graph graph, const CompileRequest& request) {
  const PreparedModel model = prepare(std::move(graph), request);
  return tune::decide_nodes(model.graph, model.options);
}

tune::TuneReport tune_kernels(const Graph& graph, const CompileRequest& request) {
  std::optional<tune::TuningCache> cache = open_tuning_cache(true, request);
  tune::TuneReport report = tune_into(*cache, graph, request);
  codegen::CompileOptions options = options_of(request, graph);
  if (!request.target.is_gpu() || report.left() > 0) return report;
  // Operations that only libraries compute.
  options.choose = tune::tuned_choice(*cache, tune::tuning_place(*options.target, request.threads));
  Program program = codegen::compile(graph, options).program;
  take_tuned_candidates(program, *cache, request, true);
  return report;
}

}  // namespace tenon::driver
