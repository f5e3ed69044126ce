#include "app/compile_request.h"
#include "app/targets.h"
#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "driver/pipeline.h"
#include "models/model.h"
#include "tune/cache.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tenon::cli {
namespace {

struct TuneCommandOptions {
  std::string model, export_to, import_from, cpu = "native", seconds, target, precision;
  bool show = false, all = false, clear = false, as_is = false, no_winograd = false;
  int threads = 0;
};

std::string digits(double value, const char* format) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

using Json = nlohmann::ordered_json;

std::string cache_path() {
  const std::optional<std::string> path = tune::tuning_cache_path();
  if (path) return *path;
  throw Error("there is no home folder, and so no tuning cache", ErrorKind::Usage)
      .hint("XDG_CACHE_HOME says where it may be: an absolute path");
}

// Prints the outcome: a line of text, or a JSON object.
int report(OutputFormat format, const std::string& text, const Json& json) {
  if (format == OutputFormat::Json) {
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    out() << text << "\n";
  }
  return 0;
}

std::vector<tune::TunedKernel> tuned_kernels() {
  const std::string path = cache_path();
  if (!std::filesystem::exists(path)) return {};
  return tune::TuningCache(path, tune::TuningCache::Mode::Read).all();
}

// Adds one row for each range of a kernel, with the runner-up; or one for every candidate.
void add_rows(Table& table, const tune::TunedKernel& kernel, bool shows_all) {
  for (const tune::TunedKernel::Range& range : kernel.ranges) {
    std::vector<const tune::TunedKernel::Timing*> timings;
    for (const tune::TunedKernel::Timing& timing : kernel.timings) {
      if (timing.at >= range.lo && timing.at <= range.hi) timings.push_back(&timing);
    }
    if (timings.empty()) {
      for (const tune::TunedKernel::Timing& timing : kernel.timings) timings.push_back(&timing);
    }
    const std::int64_t at = timings.front()->at;  // the first timed value in the range
    std::erase_if(timings,
                  [&](const tune::TunedKernel::Timing* timing) { return timing->at != at; });
    std::stable_sort(timings.begin(), timings.end(),
                     [](const auto* a, const auto* b) { return a->seconds < b->seconds; });
    const std::string values =
        kernel.symbol.empty() ? ""
                              : concat(kernel.symbol, " ", range.lo, "..", range.hi, ", at ", at);
    const double least = timings.front()->seconds;
    for (const tune::TunedKernel::Timing* timing : timings) {
      const bool is_chosen = timing->candidate == range.candidate;
      if (!shows_all && !is_chosen) continue;
      std::string why = is_chosen ? "chosen" : "";
      if (is_chosen && timing != timings.front())
        why = "chosen: lowest estimated cost, within timing noise of the fastest";
      table.add({kernel.name, values, timing->candidate, digits(timing->seconds * 1e6, "%.1f"),
                 kernel.flops > 0 ? digits(kernel.flops / timing->seconds / 1e9, "%.1f") : "",
                 digits(100 * least / timing->seconds, "%.0f %%"), concat(timings.size()), why});
    }
  }
}

int show_cache(const TuneCommandOptions& options, OutputFormat format) {
  const std::vector<tune::TunedKernel> kernels = tuned_kernels();
  if (format == OutputFormat::Json) {
    out() << to_json(kernels);
    return 0;
  }
  out() << cache_path() << ": " << kernels.size()
        << (kernels.size() == 1 ? " kernel\n" : " kernels\n");
  for (std::size_t k = 0; k < kernels.size();) {
    const tune::TuningPlace& place = kernels[k].place;
    out() << "\n"
          << place.machine << ", " << place.threads << (place.threads == 1 ? " thread" : " threads")
          << ", code by " << place.generator << "\n\n";
    Table table(
        {"kernel", "for", "candidate", ">us", ">GFLOP/s", ">of fastest", ">timed", "reason"});
    for (; k < kernels.size() && kernels[k].place == place; ++k)
      add_rows(table, kernels[k], options.all);
    table.print(out());
  }
  return 0;
}

int export_cache(const std::string& file, OutputFormat format) {
  const std::vector<tune::TunedKernel> kernels = tuned_kernels();
  NewFile out(file);
  out.out() << to_json(kernels);
  out.finish();
  return report(format, concat(file, ": ", kernels.size(), " kernels"),
                {{"written", file}, {"kernels", kernels.size()}});
}

int import_cache(const std::string& file, OutputFormat format) {
  constexpr std::uintmax_t kMostBytes = 256 << 20;
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(file, failed);
  if (failed)
    throw Error("cannot read the timings", ErrorKind::Usage).at(file).got(failed.message());
  if (size > kMostBytes)
    throw Error("the timings are too large")
        .at(file)
        .expected("256 MiB at most")
        .got(size, " bytes");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  const std::vector<tune::TunedKernel> kernels = tune::tuned_kernels_from_json(text.str(), file);
  const std::string path = cache_path();
  tune::TuningCache cache(path, tune::TuningCache::Mode::Write);
  for (const tune::TunedKernel& kernel : kernels) cache.store(kernel);
  return report(format, concat(path, ": ", kernels.size(), " kernels from ", file),
                {{"cache", path}, {"read", file}, {"kernels", kernels.size()}});
}

int tune(const TuneCommandOptions& options, OutputFormat format) {
  const int asked = static_cast<int>(options.show) + static_cast<int>(options.clear) +
                    static_cast<int>(!options.export_to.empty()) +
                    static_cast<int>(!options.import_from.empty()) +
                    static_cast<int>(!options.model.empty());
  if (asked != 1) {
    throw Error("one thing at a time", ErrorKind::Usage)
        .expected("a model, or one of --show, --clear, --export=FILE, --import=FILE")
        .got(asked, " of them");
  }
  if (options.show) return show_cache(options, format);
  if (!options.export_to.empty()) return export_cache(options.export_to, format);
  if (!options.import_from.empty()) return import_cache(options.import_from, format);
  if (options.clear) {
    const std::string path = cache_path();
    const bool is_removed = tune::clear_tuning_cache(path);
    return report(format, path + (is_removed ? ": removed" : ": there is none"),
                  {{"cache", path}, {"removed", is_removed}});
  }
  driver::CompileRequest settings;
  settings.target = app::target_of(options.target, options.cpu, options.precision);
  settings.allow_winograd = !options.no_winograd;
  settings.threads = options.threads;
  settings.tune_seconds = app::tuning_seconds(options.seconds.empty() ? "true" : options.seconds);
  Graph graph = models::load_model(options.model);
  if (!options.as_is)
    graph = driver::run_pipeline(std::move(graph), driver::pipeline_for(settings.target));
  const std::string came_of_it = tune_graph(graph, settings);
  return report(format, came_of_it, {{"model", options.model}, {"tuning", came_of_it}});
}

}  // namespace

void add_tune(Commands& commands) {
  const auto [app, options] = commands.add<TuneCommandOptions>(
      "tune", "Time the candidates of a model's kernels, or manage the tuning cache", tune);
  app.add_option("model", options.model, kModelHelp);
  app.add_option("--seconds", options.seconds, "time limit: no kernel is started after it")
      ->check(positive_number(false));
  add_threads(app, options.threads);
  app.add_option("--cpu", options.cpu, "native, x86-64-v3 or x86-64-v4");
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
  add_no_winograd(app, options.no_winograd);
  app.add_flag("--as-is", options.as_is, "skip graph passes, as `convert` does");
  app.add_flag("--show", options.show, "print the tuning cache");
  app.add_flag("--all", options.all, "with --show: every candidate, not only the fastest");
  app.add_flag("--clear", options.clear, "clear the tuning cache");
  app.add_option("--export", options.export_to, "write the tuning cache as JSON");
  app.add_option("--import", options.import_from, "read a file written by --export");
}

}  // namespace tenon::cli
