#include "codegen/compile.h"

#include "app/compile_request.h"
#include "app/targets.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/pass_output.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "driver/explain.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "models/shared_object.h"
#include "program/file.h"
#include "program/totals.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <set>

namespace tenon::cli {

namespace {

using Json = nlohmann::ordered_json;

struct CompileCommandOptions : StageOptions {
  std::string model, output, cpu = "native", tune, target, precision, constants;
  std::int64_t batch = 0;
  /// "true": all weights
  std::vector<std::string> swappable_weights;
  std::vector<std::string> specialised_shapes;
  std::vector<std::string> preferred;
  /// the representation to print; may be empty
  std::string print;
  bool print_code = false, no_winograd = false, untuned = false;
  /// thread count that kernels are chosen for
  int threads = 0;
};

driver::CompileRequest request_of(const CompileCommandOptions& options) {
  driver::CompileRequest request = app::compile_request(options, options.tune);
  request.specialised_shapes = options.specialised_shapes;
  request.passes.without = options.without;
  request.passes.verify_each = options.verify_each;
  request.passes.reports_nests = request.keeps_record = options.time_passes;
  return request;
}

codegen::CompileStage stage_of(const std::string& name) {
  using codegen::CompileStage;
  static const std::map<std::string, CompileStage> stages = {{"nests", CompileStage::Nests},
                                                             {"tasks", CompileStage::Tasks},
                                                             {"plan", CompileStage::Plan},
                                                             {"program", CompileStage::Program}};
  const auto found = stages.find(name);
  if (found != stages.end()) return found->second;
  throw Error(concat("nothing to print is called '", name, "'"), ErrorKind::Usage)
      .hint(suggest_name(name,
                         std::vector<std::string>{"kernels", "nests", "plan", "program", "tasks"}));
}

// Returns the candidates of each distinct nest.
std::vector<driver::Explanation::Kernel> different_kernels(const Graph& graph,
                                                           const CompileCommandOptions& options) {
  std::set<std::string> seen;
  std::vector<driver::Explanation::Kernel> kernels;
  for (const codegen::Decision& decision : decide_tuned(graph, request_of(options))) {
    if (seen.insert(decision.work).second) kernels.push_back(driver::describe_decision(decision));
  }
  return kernels;
}

void print_kernels(const std::vector<driver::Explanation::Kernel>& kernels) {
  for (const driver::Explanation::Kernel& kernel : kernels) {
    Table table({concat("kernel ", kernel.name), "decision"});
    for (const auto& [name, text] : kernel.candidates) table.add({name, text});
    table.print(out());
    out() << "\n";
  }
}

Json to_json(const std::vector<driver::Explanation::Kernel>& kernels) {
  Json json = Json::array();
  for (const driver::Explanation::Kernel& kernel : kernels) {
    Json candidates = Json::array();
    for (const auto& [name, text] : kernel.candidates)
      candidates.push_back({{"candidate", name}, {"says", text}});
    json.push_back({{"name", kernel.name}, {"candidates", std::move(candidates)}});
  }
  return json;
}

void print_json(const Json& json) {
  out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

int compile(const CompileCommandOptions& options, OutputFormat format) {
  const bool is_json = format == OutputFormat::Json;
  const auto begin = std::chrono::steady_clock::now();
  Graph graph = models::rebatched(models::ModelSource(options.model).graph(), options.batch);
  if (options.print_code ||
      (!options.print.empty() && options.print != "true" && options.print != "kernels")) {
    const codegen::CompileStage stage =
        options.print_code ? codegen::CompileStage::Code : stage_of(options.print);
    const std::string code = print_tuned(std::move(graph), request_of(options), stage);
    if (is_json)
      print_json({{"model", options.model}, {options.print_code ? "code" : options.print, code}});
    else
      out() << code;
    return 0;
  }
  Json json = {{"model", options.model}};
  if (!options.print.empty()) {
    const std::vector<driver::Explanation::Kernel> kernels = different_kernels(graph, options);
    if (is_json)
      json["candidates"] = to_json(kernels);
    else
      print_kernels(kernels);
    if (options.output.empty()) {
      if (is_json) print_json(json);
      return 0;
    }
  }
  StageOutput stages(options);
  driver::CompileRequest request = request_of(options);
  if (stages.is_wanted())
    request.passes.on_stage = [&](const driver::StageText& stage) { stages.take(stage); };
  if (!options.stop_after.empty()) {
    if (!options.output.empty())
      throw Error("a program needs all passes", ErrorKind::Usage)
          .hint("leave out -o or --stop-after");
    driver::run_stages(std::move(graph), request, options.stop_after);
    return 0;
  }
  const bool checks_only = stages.is_wanted() || options.time_passes || options.verify_each;
  if (options.output.empty() && !checks_only) {
    throw Error("nowhere to write the program", ErrorKind::Usage).hint("give a file: -o FILE.tnn");
  }
  if (!options.swappable_weights.empty()) {
    request.swappable_weights = options.swappable_weights;
    if (options.swappable_weights == std::vector<std::string>{"true"})
      request.swappable_weights->clear();
  }
  const driver::CompileRecord record = compile_tuned(std::move(graph), request);
  const Program& program = record.program;
  if (options.time_passes) {
    print_table(record.passes, "nodes");
    print_table(record.nest_passes, "nests");
  }
  const std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - begin;
  if (options.output.empty()) return 0;
  if (options.output.ends_with(".so")) {
    models::write_shared_object(program, options.output, options.constants);
  } else if (!options.constants.empty()) {
    throw Error("only a shared object has its constants in another file", ErrorKind::Usage)
        .hint("-o FILE.so --constants=FILE.bin");
  } else {
    write_program(program, options.output);
  }
  if (!options.output.ends_with(".tnn") && !options.output.ends_with(".so")) {
    err() << "note: `tenon run` takes a program only from FILE.tnn, unless --trust-program is "
             "given\n";
  }
  const ProgramTotals totals = totals_of(program);
  if (is_json) {
    json.update({{"program", options.output},
                 {"target", program.target},
                 {"compile_ms", elapsed.count()},
                 {"kernels", totals.kernels},
                 {"steps", totals.steps},
                 {"operator_steps", totals.operator_steps},
                 {"code_bytes", totals.code_bytes},
                 {"constant_bytes", totals.constant_bytes},
                 {"arena_bytes", totals.arena_bytes}});
    print_json(json);
  } else {
    out() << options.output << ": " << totals.steps << " steps of " << totals.kernels
          << " kernels for " << program.target << ", " << format_bytes(totals.constant_bytes)
          << " of constants, " << format_bytes(totals.arena_bytes) << " arena; compiled in "
          << static_cast<int>(elapsed.count()) << " ms\n";
  }
  return 0;
}

}  // namespace

void add_compile(Commands& commands) {
  const auto [app, options] = commands.add<CompileCommandOptions>(
      "compile", "Compile a model into a program file", compile);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option(
      "-o,--output", options.output,
      "the program to write: FILE.tnn, or FILE.so, a shared object with the C interface");
  app.add_option("--constants", options.constants,
                 "with FILE.so: a separate file for the constants");
  app.add_flag("--swappable-weights", options.swappable_weights,
               "weights can be replaced by name after loading: all, or the named ones; slows "
               "the program down")
      ->type_name("[=NAME,…]")
      ->delimiter(',');
  add_batch(app, options.batch);
  app.add_option("--cpu", options.cpu, "native, x86-64-v3 or x86-64-v4");
  app.add_option("--target", options.target, "cpu (default) or cuda[:sm_90a]");
  add_precision(app, options.precision);
  add_no_winograd(app, options.no_winograd);
  add_tuning(app, options.tune);
  add_untuned(app, options.untuned);
  add_preferred(app, options.preferred);
  app.add_option("--threads", options.threads,
                 "threads that kernels are chosen for (default: as many as the process may use)")
      ->check(thread_count());
  app.add_option(
      "--specialise,--hot", options.specialised_shapes,
      "NAME:8x3x224x224,…: shape specialization: kernels for frequent shapes of symbolic inputs");
  app.add_flag("--print", options.print,
               "print the candidates of each kernel; or =nests, =tasks, =plan, =program")
      ->type_name("[=WHAT]");
  app.add_flag("--print-code", options.print_code, "print loop nests, code and assembly");
  app.add_option("--without", options.without, "passes over graphs or nests to leave out")
      ->delimiter(',');
  app.add_option("--stop-after", options.stop_after, "end after this pass and print its result");
  app.add_option("--print-after", options.print_after, "print the results of these passes")
      ->delimiter(',');
  app.add_flag("--print-after-all", options.print_after_all,
               "print the results of all passes, tasks, plan and program");
  app.add_option("--dump-dir", options.dump_dir, "write each of these to a file in this folder");
  app.add_flag("--time-passes", options.time_passes,
               "print time and changes of each pass on stderr");
  app.add_flag("--verify-each", options.verify_each, "compare results before and after each pass");
}

}  // namespace tenon::cli
