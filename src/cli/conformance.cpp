#include "driver/conformance.h"

#include "app/targets.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"

#include <nlohmann/json.hpp>

namespace tenon::cli {
namespace {

using Status = driver::ConformanceResult::Status;

struct ConformanceCommandOptions {
  std::vector<std::string> folders;
  std::string filter, expected_failures, target = "reference", keep;
  double absolute = 1e-7, relative = 1e-3;
  bool symbolic = false, vary = false;
  std::size_t every = 1;
};

const char* name_of(Status status) {
  switch (status) {
    case Status::Passed:
      return "passed";
    case Status::Failed:
      return "failed";
    case Status::ListedFailure:
      return "expected failure";
    case Status::ListedButPassed:
      break;
  }
  return "unexpected pass";
}

bool counts_as_failure(Status status) {
  return status == Status::Failed || status == Status::ListedButPassed;
}

int conformance(const ConformanceCommandOptions& options, OutputFormat format) {
  driver::ConformanceOptions settings;
  settings.tolerance = {options.relative, options.absolute};
  settings.filter = options.filter;
  settings.is_compiled = app::is_compiled_target(options.target);
  if (settings.is_compiled) settings.target = app::target_of(options.target, "native", "");
  settings.is_symbolic = options.symbolic;
  settings.varies = options.vary;
  settings.kept_runs = options.keep;
  if (!options.keep.empty() && !options.vary) throw Error("--keep needs --vary", ErrorKind::Usage);
  if (options.vary && !options.symbolic) throw Error("--vary needs --symbolic", ErrorKind::Usage);
  if (!options.expected_failures.empty()) {
    settings.expected_failures = driver::read_expected_failures(options.expected_failures);
  }
  std::vector<driver::ConformanceCase> cases;
  for (const std::string& folder : options.folders) {
    for (driver::ConformanceCase& test : driver::find_conformance_cases(folder))
      cases.push_back(std::move(test));
  }
  std::size_t place = 0;
  std::erase_if(cases,
                [&](const driver::ConformanceCase&) { return place++ % options.every != 0; });
  Progress progress("conformance");
  settings.on_progress = [&](std::size_t done, std::size_t total) { progress.update(done, total); };
  const std::vector<driver::ConformanceResult> results = driver::run_conformance(cases, settings);
  if (results.empty()) {
    throw Error(concat("no case is called '", options.filter, "', in whole or in part"),
                ErrorKind::Usage)
        .got(cases.size(), " cases in ", join(options.folders, ", "));
  }

  std::size_t passed = 0, failed = 0, listed = 0, kernel_only = 0;
  std::size_t equal = 0, refused = 0, stricter = 0, wrong = 0;
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const driver::ConformanceResult& result : results) {
    passed += result.status == Status::Passed;
    failed += counts_as_failure(result.status);
    listed += result.status == Status::ListedFailure;
    kernel_only += result.is_kernel_only;
    equal += result.varied.equal;
    refused += result.varied.refused;
    stricter += result.varied.stricter.size();
    wrong += result.varied.wrong.size();
    if (format == OutputFormat::Json) {
      json.push_back({{"name", result.name},
                      {"status", name_of(result.status)},
                      {"reason", result.reason},
                      {"kernels_alone", result.is_kernel_only},
                      {"elapsed_ms", result.elapsed_ms}});
      if (options.vary) {
        json.back()["varied"] = {{"equal", result.varied.equal},
                                 {"refused", result.varied.refused},
                                 {"stricter", result.varied.stricter},
                                 {"wrong", result.varied.wrong}};
      }
    } else if (counts_as_failure(result.status)) {
      out() << "FAILED " << result.name << "\n  " << result.reason << "\n";
    }
  }
  if (format == OutputFormat::Json) {
    // Reasons may quote bytes of a model that are not UTF-8.
    out() << nlohmann::ordered_json{{"passed", passed},
                                    {"failed", failed},
                                    {"expected_failures", listed},
                                    {"kernels_alone", kernel_only},
                                    {"cases", json}}
                 .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
          << "\n";
  } else {
    out() << passed << " passed, " << failed << " failed";
    if (listed > 0) out() << ", " << listed << " skipped";
    if (settings.is_compiled)
      out() << "; all compiled, " << kernel_only << " of them as kernels alone";
    out() << "\n";
    if (options.vary) {
      out() << "one extent changed at a time: " << equal << " runs as with fixed shapes, "
            << refused << " refused by both, " << stricter << " refused with symbols alone, "
            << wrong << " wrong\n";
    }
  }
  return failed > 0 ? 1 : 0;
}

}  // namespace

void add_conformance(Commands& commands) {
  const auto [app, options] = commands.add<ConformanceCommandOptions>(
      "conformance", "Run test cases in the layout of the ONNX backend tests", conformance);
  app.add_option("folders", options.folders, "folders of cases")->required();
  app.add_option("--filter", options.filter, "only cases whose name contains this text");
  app.add_option("--every", options.every, "only every Nth case")->check(CLI::PositiveNumber);
  app.add_option("--expected-failures", options.expected_failures, "a file of lines 'case reason'");
  app.add_option("--target", options.target, kTargetHelp);
  app.add_flag("--symbolic", options.symbolic, "make every axis of every input symbolic");
  app.add_flag("--vary", options.vary,
               "with --symbolic: also vary one extent at a time, and compare with fixed shapes");
  app.add_option("--keep", options.keep,
                 "DIR: with --vary, inputs and outputs of each run, in CASE/test_data_set_3");
  app.add_option("--atol", options.absolute, "absolute tolerance")->check(tolerance());
  app.add_option("--rtol", options.relative, "relative tolerance")->check(tolerance());
}

}  // namespace tenon::cli
