#include "base/error.h"
#include "base/temporary_folder.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/table.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "host/compiled.h"
#include "models/inputs.h"
#include "models/model.h"
#include "models/summary.h"
#include "program/file.h"
#include "reference/evaluate.h"
#include "testing/compare.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace tenon::cli {
namespace {

namespace fs = std::filesystem;

// Steps of the demo with their times and findings.
class Story {
 public:
  template <class F>
  auto step(const std::string& what, F work) {
    const bool is_shown = isatty(STDERR_FILENO) != 0;
    if (is_shown) err() << what << " …" << std::flush;
    const auto begin = std::chrono::steady_clock::now();
    auto result = work();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - begin;
    if (is_shown) err() << "\r\033[K" << std::flush;
    rows_.push_back({what, elapsed.count(), ""});
    return result;
  }
  void found(std::string text) { rows_.back().found = std::move(text); }

  void print(OutputFormat format) const {
    if (format == OutputFormat::Json) {
      nlohmann::ordered_json json = nlohmann::ordered_json::array();
      for (const Row& row : rows_)
        json.push_back({{"step", row.what}, {"elapsed_ms", row.elapsed_ms}, {"found", row.found}});
      out() << json.dump(2) << "\n";
      return;
    }
    Table table({"step", ">ms", "result"});
    for (const Row& row : rows_) {
      char elapsed[32];
      std::snprintf(elapsed, sizeof elapsed, "%.1f", row.elapsed_ms);
      table.add({row.what, elapsed, row.found});
    }
    table.print(out());
  }

 private:
  struct Row {
    std::string what;
    double elapsed_ms;
    std::string found;
  };
  std::vector<Row> rows_;
};

int demo(OutputFormat format) {
  Story story;
  const Graph network =
      story.step("build zoo:resnet50", [] { return models::load_model("zoo:resnet50"); });
  const models::GraphSummary summary = models::summarize(network);
  story.found(concat(summary.node_count, " nodes, ",
                     format_count(static_cast<double>(summary.parameter_count)), " parameters, ",
                     format_count(static_cast<double>(summary.total.flops.constant())), " flops"));

  const TemporaryFolder folder("demo");
  const std::string file = folder.file("resnet50.onnx"), artefact = folder.file("resnet50.tnn");
  story.step("write it as ONNX", [&] {
    models::save_model(network, "onnx", file);
    return 0;
  });
  story.found(format_bytes(fs::file_size(file)));
  const Graph imported = story.step("read it back", [&] { return models::load_model(file); });
  story.found(concat(models::summarize(imported).node_count, " nodes"));
  const Graph optimised =
      story.step("run the passes", [&] { return driver::run_pipeline(imported, {}); });
  story.found(concat(models::count_kernels(optimised), " kernels of ",
                     models::count_kernels(imported), " nodes"));
  story.step("compile it", [&] {
    write_program(codegen::compile(optimised, driver::cpu_options()).program, artefact);
    return 0;
  });
  story.found(concat(format_bytes(fs::file_size(artefact)), " program file"));
  CompiledModel model =
      story.step("load the program", [&] { return CompiledModel(read_program(artefact), 0); });
  story.found(concat(model.program().steps.size(), " steps for ", model.program().target));

  const std::vector<Datum> inputs = models::random_inputs(network, 0);
  const std::vector<Datum> actual =
      story.step("run it the first time", [&] { return model.run(inputs); });
  story.found(concat(to_string(actual.front().type()), ", ",
                     format_bytes(model.executor().arena_bytes()), " arena"));
  constexpr int kRuns = 10;
  double best_ms = 0;
  story.step(concat("run it ", kRuns, " times"), [&] {
    for (int k = 0; k < kRuns; ++k) {
      const auto begin = std::chrono::steady_clock::now();
      model.run_prepared();
      const std::chrono::duration<double, std::milli> elapsed =
          std::chrono::steady_clock::now() - begin;
      best_ms = k == 0 ? elapsed.count() : std::min(best_ms, elapsed.count());
    }
    return 0;
  });
  story.found(
      concat(format_real(static_cast<float>(best_ms)), " ms at best, ",
             format_count(static_cast<double>(summary.total.flops.constant()) / best_ms * 1000),
             " flops a second"));
  const std::vector<Datum> expected =
      story.step("run the reference", [&] { return reference::evaluate(network, inputs); });
  const testing::Comparison comparison =
      testing::compare(actual.front(), expected.front(), {1e-4, 1e-5});
  story.found(comparison.is_equal
                  ? concat("equal; largest error ",
                           format_real(static_cast<float>(comparison.largest_error)))
                  : comparison.what);
  story.print(format);
  return comparison.is_equal ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace

void add_demo(Commands& commands) {
  commands.add("demo", "Import, optimize, compile and run the built-in ResNet-50", demo);
}

}  // namespace tenon::cli
