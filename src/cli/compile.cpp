#include "codegen/compile.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "driver/explain.h"
#include "driver/model.h"
#include "program/file.h"
#include "program/totals.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>
#include <set>

namespace tenon::cli {

bool is_compiled_target(const std::string& target) {
  if (target == "cpu" || target == "reference") return target == "cpu";
  throw Error(concat("no target is called '", target, "'"), ErrorKind::Usage)
      .hint(suggest_name(target, std::vector<std::string>{"cpu", "reference"}));
}

namespace {

TuningOptions tuning_of(const CompileCommandOptions& options) {
  return {options.cpu,  !options.no_winograd, options.threads,
          options.tune, options.untuned,      options.hot_shapes};
}

// What could compute each nest, each different one once.
void print_kernels(const CompileCommandOptions& options) {
  std::set<std::string> seen;
  for (const codegen::Decision& decision : decide_tuned(load_model(options.model), tuning_of(options))) {
    if (!seen.insert(decision.work).second) continue;
    const Explanation::Kernel kernel = in_words(decision);
    Table table({concat("kernel ", kernel.name), "what it says"});
    for (const auto& [name, text] : kernel.candidates) table.add({name, text});
    table.print(std::cout);
    std::cout << "\n";
  }
}

}  // namespace

int compile(const CompileCommandOptions& options, OutputFormat format) {
  if (options.print_code) {
    std::cout << print_tuned(load_model(options.model), tuning_of(options));
    return 0;
  }
  if (options.print_kernels) {
    print_kernels(options);
    if (options.output.empty()) return 0;
  }
  if (options.output.empty()) {
    throw Error("nowhere to write the program", ErrorKind::Usage).hint("give a file: -o FILE.tnn");
  }
  const auto begin = std::chrono::steady_clock::now();
  const Program program = compile_tuned(load_model(options.model), tuning_of(options));
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
  write_program(program, options.output);
  const ProgramTotals totals = totals_of(program);
  if (format == OutputFormat::Json) {
    std::cout << nlohmann::ordered_json{{"model", options.model},
                                        {"program", options.output},
                                        {"target", program.target},
                                        {"compile_ms", elapsed.count()},
                                        {"kernels", totals.kernels},
                                        {"steps", totals.steps},
                                        {"parts", program.parts.size()},
                                        {"operator_steps", totals.operator_steps},
                                        {"code_bytes", totals.code_bytes},
                                        {"constant_bytes", totals.constant_bytes},
                                        {"arena_bytes", totals.arena_bytes}}
                     .dump(2)
              << "\n";
  } else {
    std::cout << options.output << ": " << totals.steps << " steps of " << totals.kernels
              << " kernels for " << program.target << ", " << format_bytes(totals.constant_bytes)
              << " of constants, " << format_bytes(totals.arena_bytes) << " arena; compiled in "
              << static_cast<int>(elapsed.count()) << " ms\n";
  }
  return 0;
}

}  // namespace tenon::cli
