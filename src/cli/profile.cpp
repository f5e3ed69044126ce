#include "profile/profile.h"

#include "app/compile_request.h"
#include "app/targets.h"
#include "app/timed_program.h"
#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/run.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "documents/document.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "planning/budget.h"
#include "profile/load.h"
#include "profile/record.h"
#include "profile/report.h"
#include "profile/tables.h"
#include "profile/trace.h"
#include "train/options.h"

namespace tenon::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> profiles;
  std::string output;
  int top = 20;
};

struct ProfileOptions {
  std::int64_t batch = 0;
  std::string model, cpu = "native", tune, target, precision;
  std::vector<std::string> inputs, shapes, preferred;
  int threads = 0, warm_up_runs = 3, iterations = 0, top = 20;
  double duration_s = 1;
  bool no_winograd = false, untuned = false, table = false, no_counters = false, overhead = false,
       trust_program = false;
  std::string report, megengine, trace, tensorscope, aitemplate, dot, svg, save, compare;
  /// an optimizer: profiles a training step with it
  std::string train, loss;
  /// memory limit of a run
  std::string budget;
  /// permits offloading to a file
  bool swap = false;
  /// permits splitting the batch
  bool split = false;
  /// as in a run, which then precedes the profile
  std::string check_nan, dump_values;
  double check_range = 0;
};

void write_report_text(const std::string& path, const std::string& text) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

void print(const Page& page, const std::string& format) {
  if (format == "table") {
    print_page(page, out());
  } else {
    out() << profile::page_as(page, format);
  }
}

std::size_t rows(int top) {
  if (top < 1)
    throw Error("no table has so few rows", ErrorKind::Usage).expected("--top=1 or more").got(top);
  return static_cast<std::size_t>(top);
}

int compare(const ProfileOptions& options, const std::string& format) {
  const std::vector<std::string> files = split(options.compare, ',');
  if (files.size() != 2) {
    throw Error("two profiles are compared", ErrorKind::Usage)
        .expected("--compare=A.json,B.json")
        .got(options.compare);
  }
  const Profile before = profile::load_profile(files[0]), after = profile::load_profile(files[1]);
  if (!options.report.empty())
    write_report_text(options.report, profile::html_report({before, after}));
  print(profile::compare_profiles(before, after, rows(options.top)), format);
  return 0;
}

// Refuses formats that need the graph for a program file, which lacks it.
void require_graph(const ProfileOptions& options, bool is_program) {
  if (!is_program) return;
  for (const auto& [option, value] :
       {std::pair("--megengine", &options.megengine),
        std::pair("--tensorscope", &options.tensorscope),
        std::pair("--aitemplate", &options.aitemplate), std::pair("--train", &options.train),
        std::pair("--budget", &options.budget)}) {
    if (value->empty()) continue;
    throw Error(concat(option, ": a program file has no graph"), ErrorKind::Usage)
        .hint("give the model itself");
  }
}

// Runs --check-nan, --check-range and --dump-values before the profile, and stops there if the
// check fails.
int look_first(const ProfileOptions& options, const std::string& format) {
  if (options.check_nan.empty() && options.check_range == 0 && options.dump_values.empty())
    return 0;
  if (!options.train.empty())
    throw Error("values inside a step of training are not looked at", ErrorKind::Unsupported)
        .hint("leave out --train, or --check-nan, --check-range and --dump-values");
  if (format != "table")
    throw Error("what a look at values finds is no part of the profile's tables", ErrorKind::Usage)
        .expected("--format=table beside --check-nan, --check-range and --dump-values")
        .got("--format=", format)
        .hint("`tenon run` takes these flags with --format=json");
  app::RunOptions run;
  run.model = options.model;
  run.inputs = options.inputs;
  run.shapes = options.shapes;
  run.batch = options.batch;
  run.threads = options.threads;
  run.target = options.target;
  run.trust_program = options.trust_program;
  run.check_nan = options.check_nan;
  run.check_range = options.check_range;
  run.dump_values = options.dump_values;
  return run_observed(run, OutputFormat::Table);
}

int profile(const ProfileOptions& options, const std::string& format) {
  if (format != "table") profile::page_as({}, format);  // refuses unknown formats
  if (!options.compare.empty()) return compare(options, format);
  if (options.model.empty())
    throw Error("no model to profile", ErrorKind::Usage)
        .hint("tenon profile MODEL, or --compare=A.json,B.json");
  const models::ModelSource source(options.model);
  std::optional<Program> given = source.program(options.trust_program);
  const bool is_program = given.has_value();
  require_graph(options, is_program);
  if (const int found = look_first(options, format); found != 0) return found;
  driver::CompileRequest request = app::compile_request(options, options.tune);
  if (!options.shapes.empty()) request.specialised_shapes = {join(options.shapes, ",")};
  request.keeps_record = true;
  app::TimedProgram made =
      app::timed_program(source, std::move(given),
                         {options.batch,
                          options.shapes,
                          options.train,
                          options.loss,
                          {options.budget, {}, options.swap, options.threads, options.split}},
                         request, compile_tuned);
  const driver::CompileRecord& record = made.record;
  const passes::StatefulGraph& step = made.step;
  const std::unique_ptr<planning::BudgetPlanner>& planner = made.planner;
  Program program = std::move(made.program);
  const Graph ports = input_ports(program);
  CompiledModel model(std::move(program), options.threads);
  std::vector<Datum> inputs =
      models::read_inputs(ports, options.inputs, models::parse_shapes(options.shapes));
  profile::RecordOptions settings;
  for (const passes::State& state : step.states) {
    inputs[state.input] = state.initial.materialise();
    settings.state_inputs.push_back(state.input);
    settings.state_outputs.push_back(state.output);
  }
  settings.warm_up_runs = options.warm_up_runs;
  settings.duration_s = options.duration_s;
  settings.with_counters = !options.no_counters;
  settings.with_overhead = options.overhead;
  if (options.iterations > 0) settings.least_runs = settings.most_runs = options.iterations;
  if (planner) settings.budget_bytes = planner->report().budget_bytes;
  Profile seen = profile::record_profile(model, inputs, is_program ? nullptr : &record, settings);
  if (seen.name.empty()) seen.name = options.model;
  if (planner) seen.notes.push_back("budget: " + to_string(planner->report()));

  bool has_written = false;
  const auto write = [&](const std::string& path, const auto& text) {
    if (path.empty()) return;
    write_report_text(path, text());
    has_written = true;
  };
  write(options.save, [&] { return profile::to_json(seen); });
  write(options.report, [&] { return profile::html_report({seen}); });
  write(options.trace, [&] { return profile::chrome_trace(seen); });
  write(options.dot, [&] { return profile::dot_graph(seen); });
  write(options.svg, [&] { return profile::svg_graph(seen); });
  write(options.megengine, [&] {
    return documents::find_document_format("megengine")->print_run(seen, record.graph);
  });
  write(options.tensorscope, [&] { return models::model_text(record.graph, "tensorscope"); });
  write(options.aitemplate, [&] { return models::model_text(record.graph, "aitemplate"); });
  if (options.table || !has_written || format != "table")
    print(profile::describe_profile(seen, rows(options.top)), format);
  return 0;
}

}  // namespace

void add_profile(Commands& commands) {
  const auto [app, options] = commands.add<ProfileOptions>(
      "profile", "Run a model and report time and memory per step", profile);
  app.add_option("model", options.model, kModelOrProgramHelp);
  app.add_option("--report", options.report, "FILE.html: a self-contained page");
  app.add_option("--save", options.save,
                 "FILE.json: the whole profile, for `tenon report` and --compare");
  app.add_option("--megengine", options.megengine, "FILE.json: a profile in MegEngine's format");
  app.add_option("--trace", options.trace, "FILE.json: a trace for Chrome or Perfetto");
  app.add_flag("--table", options.table, "print tables even if files are written");
  app.add_option("--tensorscope", options.tensorscope,
                 "FILE.txt: the nodes in TensorScope's format");
  app.add_option("--aitemplate", options.aitemplate, "FILE.txt: the graph in AITemplate's format");
  app.add_option("--dot", options.dot, "FILE.dot: for Graphviz, coloured by time");
  app.add_option("--svg", options.svg, "FILE.svg: the same as a picture");
  app.add_flag("--train{sgd}", options.train, "profile a training step with this optimizer")
      ->type_name("[=OPTIMIZER]");
  app.add_option("--loss", options.loss, "with --train: as for train");
  app.add_option("--budget", options.budget, kBudgetHelp);
  app.add_flag("--swap", options.swap, kSwapHelp);
  app.add_flag("--split", options.split, kSplitHelp);
  app.add_option("--compare", options.compare,
                 "A.json,B.json: rank what changed between two saved profiles");
  app.add_option("--top", options.top, "rows of each table (default: 20)")
      ->check(whole_number(1, kMostRuns));
  app.add_option("--input", options.inputs, "as for run");
  add_shapes(app, options.shapes);
  add_batch(app, options.batch);
  add_threads(app, options.threads);
  app.add_option("--warm-up", options.warm_up_runs, "runs before the clock starts")
      ->check(whole_number(0, kMostRuns));
  app.add_option("--duration", options.duration_s, "seconds to measure for")
      ->check(positive_number(true));
  app.add_option("--iterations", options.iterations, "number of runs, regardless of time")
      ->check(whole_number(1, kMostRuns));
  app.add_flag("--check-nan", options.check_nan, kCheckNanHelp)->type_name("[=DIR]");
  app.add_option("--check-range", options.check_range, kCheckRangeHelp);
  app.add_option("--dump-values", options.dump_values, kDumpHelp);
  app.add_flag("--overhead", options.overhead, "also measure the overhead of profiling");
  app.add_flag("--no-counters", options.no_counters, "do not read hardware counters");
  add_trust(app, options.trust_program);
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
  app.add_option("--cpu", options.cpu, "native, x86-64-v3 or x86-64-v4");
  add_no_winograd(app, options.no_winograd);
  add_tuning(app, options.tune);
  add_untuned(app, options.untuned);
  add_preferred(app, options.preferred);
}

namespace {

int report(const ReportOptions& options, const std::string& format) {
  if (format != "table") profile::page_as({}, format);
  if (options.profiles.size() > 2) {
    throw Error("one profile is shown, or two are compared", ErrorKind::Usage)
        .got(options.profiles.size(), " files");
  }
  std::vector<Profile> profiles;
  for (const std::string& path : options.profiles) profiles.push_back(profile::load_profile(path));
  if (!options.output.empty()) write_report_text(options.output, profile::html_report(profiles));
  if (!options.output.empty() && format == "table") return 0;
  print(profiles.size() == 1
            ? profile::describe_profile(profiles[0], rows(options.top))
            : profile::compare_profiles(profiles[0], profiles[1], rows(options.top)),
        format);
  return 0;
}

}  // namespace

void add_report(Commands& commands) {
  const auto [app, options] = commands.add<ReportOptions>(
      "report", "Make a page or tables of a saved profile, or compare two", report);
  app.add_option("profiles", options.profiles,
                 "files that `profile --save` wrote, or MegEngine's profiles; at most two")
      ->required();
  app.add_option("-o,--output", options.output,
                 "FILE.html: the page; without it tables are printed");
  app.add_option("--top", options.top, "rows of each table (default: 20)")
      ->check(whole_number(1, kMostRuns));
}

}  // namespace tenon::cli
