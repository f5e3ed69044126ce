#include "cli/tuning.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/table.h"
#include "driver/compile.h"
#include "driver/tuned_kernels.h"

#include <cmath>
#include <memory>

namespace tenon::cli {
namespace {

std::string counted(std::size_t count) {
  return concat(count, count == 1 ? " kernel" : " kernels");
}

std::string describe_decision(const tune::TuneReport& report, double seconds) {
  std::string text =
      concat("tuning: ", counted(report.timed), " timed in ",
             static_cast<std::int64_t>(std::ceil(seconds)), " s, ", report.known, " known before");
  if (report.failed > 0) text += concat(", ", report.failed, " that made-up data cannot run");
  if (report.left() == 0) return text;
  return concat(text, report.was_interrupted ? "; interrupted: " : "; time is up: ", report.left(),
                " left to estimates. What was timed is kept, and tuning again goes on from there");
}

// Adds terminal callbacks to a request; `on_tuned` receives the summary of tuning.
driver::CompileRequest on_terminal(driver::CompileRequest request,
                                   std::function<void(const std::string&)> on_tuned) {
  request.on_notice = [](const std::string& text) { err() << text << "\n"; };
  // Catches Ctrl-C and shows progress from the first kernel to the last.
  struct Timing {
    Interrupt interrupt;
    Progress progress{"tuning kernels"};
  };
  const auto timing = std::make_shared<std::unique_ptr<Timing>>();
  request.is_interrupted = [timing] {
    if (!*timing) *timing = std::make_unique<Timing>();
    return Interrupt::is_asked();
  };
  request.on_kernel_timed = [timing](std::size_t done, std::size_t total) {
    if (!*timing) *timing = std::make_unique<Timing>();
    (*timing)->progress.update(done, total);
  };
  request.on_tuned = [timing, on_tuned = std::move(on_tuned)](const tune::TuneReport& report,
                                                              double elapsed) {
    timing->reset();
    on_tuned(describe_decision(report, elapsed));
  };
  return request;
}

}  // namespace

driver::CompileRequest on_terminal(driver::CompileRequest request) {
  return on_terminal(std::move(request), [](const std::string& text) { err() << text << "\n"; });
}

driver::CompileRecord compile_tuned(Graph graph, driver::CompileRequest request) {
  return driver::compile_model(std::move(graph), on_terminal(std::move(request)));
}

std::string print_tuned(Graph graph, driver::CompileRequest request, codegen::CompileStage stage) {
  return driver::print_model(std::move(graph), on_terminal(std::move(request)), stage);
}

std::vector<codegen::Decision> decide_tuned(Graph graph, driver::CompileRequest request) {
  return driver::decide_kernels(std::move(graph), on_terminal(std::move(request)));
}

codegen::CompileOptions options_tuned(const Graph& graph, driver::CompileRequest request) {
  return driver::known_options(graph, on_terminal(std::move(request)));
}

std::string tune_graph(const Graph& graph, driver::CompileRequest request) {
  std::string text;
  driver::tune_kernels(graph, on_terminal(std::move(request), [&](const std::string& message) {
                         text += concat(text.empty() ? "" : "\n", message);
                       }));
  return text;
}

}  // namespace tenon::cli
