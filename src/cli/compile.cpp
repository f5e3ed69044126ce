#include "codegen/compile.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
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

constexpr const char* kReference = "reference";

bool is_compiled_target(const std::string& target) {
  if (target == kReference) return false;
  driver::parse_target(target);  // refuses unknown names
  return true;
}

TargetSpec target_of(const std::string& target, const std::string& cpu,
                     const std::string& precision) {
  if (target == kReference)
    throw Error("the reference is not compiled", ErrorKind::Usage).got("--target=", target);
  return driver::parse_target(target.empty() || target == "cpu" ? cpu : target, precision);
}

namespace {

using Json = nlohmann::ordered_json;

driver::CompileRequest request_of(const CompileCommandOptions& options) {
  driver::CompileRequest request = compile_request(options, options.tune);
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

}  // namespace

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

}  // namespace tenon::cli
