#include "app/compile_request.h"
#include "app/pass_selection.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/pass_output.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "driver/pipeline.h"
#include "models/model.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct OptOptions : app::PassSelection {
  std::string model, to = "tenon", output, style;
  /// prints them regardless of size
  bool weights = false;
  bool print = false, verify_each = false, time_passes = false, kernels = false;
  int trials = 4;
};

Json to_json(const std::vector<driver::PassReport>& reports, bool has_times) {
  Json json = Json::array();
  for (const driver::PassReport& report : reports) {
    Json pass = {{"pass", report.pass}};
    if (has_times) pass["ms"] = report.elapsed_ms;
    pass["nodes_before"] = report.nodes_before;
    pass["nodes_after"] = report.nodes_after;
    pass["change"] = report.change;
    json.push_back(std::move(pass));
  }
  return json;
}

// Progress over all passes, with a new line for each.
class VerifyProgress {
 public:
  void update(std::string_view pass, std::size_t done, std::size_t total) {
    if (pass != pass_) {
      shown_.emplace(concat("verifying ", pass));
      pass_ = pass;
    }
    shown_->update(done, total);
  }

 private:
  std::string pass_;
  std::optional<Progress> shown_;
};

int opt(const OptOptions& options, OutputFormat format) {
  driver::PipelineOptions settings = app::pipeline_of(options);
  settings.verify_each = options.verify_each;
  if (options.trials < 1)
    throw Error("--trials: at least one", ErrorKind::Usage).got(options.trials);
  settings.verify_trials = options.trials;
  std::vector<driver::PassReport> reports;
  if (options.time_passes || format == OutputFormat::Json) {
    settings.on_pass = [&](const driver::PassReport& report, const Graph&) {
      reports.push_back(report);
    };
  }
  VerifyProgress progress;
  settings.on_verified = [&](std::string_view pass, std::size_t done, std::size_t total) {
    progress.update(pass, done, total);
  };
  driver::chosen_passes(settings);  // refuses an unknown name before reading a large model
  const Graph graph = driver::run_pipeline(models::load_model(options.model), settings);

  models::SaveOptions save_options;
  save_options.style = options.style;
  if (options.kernels) save_options.note_kernels = app::kernel_notes(on_terminal({}));
  if (!options.output.empty()) models::save_model(graph, options.to, options.output, save_options);
  const bool prints = options.print || options.output.empty();
  const auto text = [&] {
    const std::string to = options.print ? "tenon" : options.to;
    std::string whole = models::model_text(graph, to, save_options);
    return options.weights || to != "tenon" ? whole : without_weights(whole);
  };
  if (format == OutputFormat::Json) {
    Json json = {{"passes", to_json(reports, options.time_passes)}};
    if (prints) json["graph"] = text();
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
    return 0;
  }
  if (options.time_passes) print_table(reports, "nodes");
  if (prints) out() << text();
  return 0;
}

}  // namespace

void add_opt(Commands& commands) {
  const auto [app, options] = commands.add<OptOptions>("opt", "Run passes over a model", opt);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option("--passes", options.passes, "the passes to run, in this order")->delimiter(',');
  app.add_option("--without", options.without, "passes to leave out")->delimiter(',');
  app.add_option("--set", options.set, "PASS.OPTION=VALUE, as in fuse.mode=relay")->delimiter(',');
  app.add_option("--stop-after", options.stop_after, "the last pass to run");
  app.add_flag("--weights", options.weights,
               "print weights in full, so that the text can be read back");
  app.add_flag("--print", options.print, "print the graph after the last pass");
  app.add_flag("--verify-each", options.verify_each, "compare results before and after each pass");
  app.add_option("--trials", options.trials, "sets of inputs for --verify-each (default: 4)")
      ->check(whole_number(1, kMostRuns));
  app.add_flag("--time-passes", options.time_passes,
               "print time and changes of each pass on stderr");
  app.add_flag("--kernels", options.kernels, kKernelsHelp);
  app.add_option("--to", options.to, "the format to write");
  app.add_option("--style", options.style, "a variant of that format");
  app.add_option("-o,--output", options.output,
                 "the file to write; without it the text is printed");
}

}  // namespace tenon::cli
