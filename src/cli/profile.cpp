#include "profile/profile.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/timed_program.h"
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

int compare(const ProfileOptions& options) {
  const std::vector<std::string> files = split(options.compare, ',');
  if (files.size() != 2) {
    throw Error("two profiles are compared", ErrorKind::Usage)
        .expected("--compare=A.json,B.json")
        .got(options.compare);
  }
  const Profile before = profile::load_profile(files[0]), after = profile::load_profile(files[1]);
  if (!options.report.empty())
    write_report_text(options.report, profile::html_report({before, after}));
  print(profile::compare_profiles(before, after, rows(options.top)), options.format);
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
int look_first(const ProfileOptions& options) {
  if (options.check_nan.empty() && options.check_range == 0 && options.dump_values.empty())
    return 0;
  if (!options.train.empty())
    throw Error("values inside a step of training are not looked at", ErrorKind::Unsupported)
        .hint("leave out --train, or --check-nan, --check-range and --dump-values");
  if (options.format != "table")
    throw Error("what a look at values finds is no part of the profile's tables", ErrorKind::Usage)
        .expected("--format=table beside --check-nan, --check-range and --dump-values")
        .got("--format=", options.format)
        .hint("`tenon run` takes these flags with --format=json");
  RunOptions run;
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

}  // namespace

int profile(const ProfileOptions& options) {
  if (options.format != "table") profile::page_as({}, options.format);  // refuses unknown formats
  if (!options.compare.empty()) return compare(options);
  if (options.model.empty())
    throw Error("no model to profile", ErrorKind::Usage)
        .hint("tenon profile MODEL, or --compare=A.json,B.json");
  const models::ModelSource source(options.model);
  std::optional<Program> given = source.program(options.trust_program);
  const bool is_program = given.has_value();
  require_graph(options, is_program);
  if (const int found = look_first(options); found != 0) return found;
  driver::CompileRequest request = compile_request(options, options.tune);
  if (!options.shapes.empty()) request.specialised_shapes = {join(options.shapes, ",")};
  request.keeps_record = true;
  TimedProgram made =
      timed_program(source, std::move(given),
                    {options.batch,
                     options.shapes,
                     options.train,
                     options.loss,
                     {options.budget, {}, options.swap, options.threads, options.split}},
                    request);
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
  if (options.table || !has_written || options.format != "table")
    print(profile::describe_profile(seen, rows(options.top)), options.format);
  return 0;
}

int report(const ReportOptions& options) {
  if (options.format != "table") profile::page_as({}, options.format);
  if (options.profiles.size() > 2) {
    throw Error("one profile is shown, or two are compared", ErrorKind::Usage)
        .got(options.profiles.size(), " files");
  }
  std::vector<Profile> profiles;
  for (const std::string& path : options.profiles) profiles.push_back(profile::load_profile(path));
  if (!options.output.empty()) write_report_text(options.output, profile::html_report(profiles));
  if (!options.output.empty() && options.format == "table") return 0;
  print(profiles.size() == 1
            ? profile::describe_profile(profiles[0], rows(options.top))
            : profile::compare_profiles(profiles[0], profiles[1], rows(options.top)),
        options.format);
  return 0;
}

}  // namespace tenon::cli
