#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "codegen/compile.h"
#include "driver/compiled.h"
#include "driver/model.h"
#include "driver/pipeline.h"
#include "program/file.h"
#include "program/totals.h"

namespace tenon::cli {

bool is_compiled_target(const std::string& target) {
  if (target == "cpu" || target == "reference") return target == "cpu";
  throw Error(concat("no target is called '", target, "'"), ErrorKind::Usage)
      .hint(suggest_name(target, std::vector<std::string>{"cpu", "reference"}));
}

int compile(const CompileCommandOptions& options, OutputFormat format) {
  if (options.print_code) {
    codegen::CompileOptions settings;
    settings.target.cpu = options.cpu;
    settings.allow_winograd = !options.no_winograd;
    std::cout << codegen::print_code(run_pipeline(load_model(options.model), {}), settings);
    return 0;
  }
  if (options.output.empty()) {
    throw Error("nowhere to write the program", ErrorKind::Usage).hint("give a file: -o FILE.tnn");
  }
  const auto begin = std::chrono::steady_clock::now();
  const Program program = compile_graph(load_model(options.model), options.cpu, !options.no_winograd);
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
