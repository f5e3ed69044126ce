#include "cli/run.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/tuning.h"
#include "ir/element_access.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <span>

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Statistics {
  double least = 0, mean = 0, greatest = 0;
  bool has_numbers = false;
};

Statistics statistics_of(const Datum& datum) {
  Statistics result;
  if (!datum.is_tensor() || datum.tensor().dtype() == DType::String || datum.tensor().size() == 0)
    return result;
  // Converts in blocks: as doubles, an output could take more memory than the network.
  const Tensor& tensor = datum.tensor();
  const std::size_t size = static_cast<std::size_t>(tensor.size()),
                    element_bytes = info(tensor.dtype()).storage_bytes;
  std::array<double, 1024> some{};
  double sum = 0;
  result = {tensor.real_at(0), 0, tensor.real_at(0), true};
  for (std::size_t at = 0; at < size; at += some.size()) {
    const std::span<double> values(some.data(), std::min(some.size(), size - at));
    elements::load_reals(tensor.dtype(), tensor.bytes().data() + at * element_bytes, values);
    for (const double value : values) {
      result.least = std::min(result.least, value);
      result.greatest = std::max(result.greatest, value);
      sum += value;
    }
  }
  result.mean = sum / static_cast<double>(size);
  return result;
}

std::string short_number(double value) { return format_real(static_cast<float>(value)); }

app::RunResult run_on_terminal(const app::RunOptions& options) {
  std::optional<Progress> progress;
  app::RunCallbacks callbacks;
  callbacks.compile = compile_tuned;
  callbacks.watch_interrupts = [] {
    return [interrupt = std::make_shared<Interrupt>()] { return Interrupt::is_asked(); };
  };
  callbacks.on_progress = [&](std::size_t done, std::size_t total) {
    if (!progress) progress.emplace("run");
    progress->update(done, total);
  };
  return app::run(options, callbacks);
}

Json to_json(const app::RunResult& result, std::size_t output) {
  const Statistics numbers = statistics_of(result.outputs[output]);
  Json entry = {{"name", result.names[output]}, {"type", to_string(result.outputs[output].type())}};
  if (numbers.has_numbers) {
    entry.update(
        Json{{"least", numbers.least}, {"mean", numbers.mean}, {"greatest", numbers.greatest}});
  }
  if (!result.comparisons.empty()) {
    const testing::Comparison& comparison = result.comparisons[output];
    entry.update(Json{{"equal", comparison.is_equal},
                      {"largest_error", comparison.largest_error},
                      {"what", comparison.what}});
  }
  return entry;
}

std::vector<std::string> row_of(const app::RunResult& result, std::size_t output) {
  const Statistics numbers = statistics_of(result.outputs[output]);
  std::vector<std::string> row = {result.names[output], to_string(result.outputs[output].type())};
  if (numbers.has_numbers) {
    row.insert(row.end(), {short_number(numbers.least), short_number(numbers.mean),
                           short_number(numbers.greatest)});
  }
  row.resize(5);
  if (!result.comparisons.empty()) {
    const testing::Comparison& comparison = result.comparisons[output];
    row.insert(row.end(), {short_number(comparison.largest_error),
                           comparison.is_equal ? "equal" : comparison.what});
  }
  return row;
}

void print_table(const app::RunResult& result) {
  std::vector<std::string> titles = {"output", "type", ">least", ">mean", ">greatest"};
  if (!result.comparisons.empty()) titles.insert(titles.end(), {">largest error", "verdict"});
  Table table(titles);
  for (std::size_t k = 0; k < result.outputs.size(); ++k) table.add(row_of(result, k));
  table.print(out());
  out() << "\n" << result.what << ", " << short_number(result.elapsed_ms) << " ms\n";
}

int run(const app::RunOptions& options, OutputFormat format) {
  if (!options.data.empty()) return run_on_data(options, format);
  if (!options.check_nan.empty() || options.check_range != 0 || !options.dump_values.empty())
    return run_observed(options, format);
  const app::RunResult result = run_on_terminal(options);
  if (format == OutputFormat::Json) {
    Json json = {{"model", options.model},
                 {"by", result.what},
                 {"elapsed_ms", result.elapsed_ms},
                 {"outputs", Json::array()}};
    for (std::size_t k = 0; k < result.outputs.size(); ++k)
      json["outputs"].push_back(to_json(result, k));
    out() << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  } else {
    print_table(result);
  }
  const bool all_equal = std::ranges::all_of(result.comparisons, &testing::Comparison::is_equal);
  return all_equal ? 0 : static_cast<int>(ErrorKind::ComparisonFailed);
}

}  // namespace

void add_run(Commands& commands) {
  const auto [app, options] = commands.add<app::RunOptions>("run", "Run a model once", run);
  app.add_option("model", options.model, kModelOrProgramHelp)->required();
  app.add_option(
      "--input", options.inputs,
      "NAME:@file.npy|@file.pb|@image.jpg|random:SEED|zeros, or @file.npz|@DIR for all inputs");
  app.add_option("--mean", options.mean,
                 "mean of an image's pixels (0 to 255) to subtract: one number or R,G,B")
      ->delimiter(',');
  app.add_option("--scale", options.scale, "factor of the pixels after --mean")->delimiter(',');
  add_batch(app, options.batch);
  add_shapes(app, options.shapes);
  app.add_option("--save-inputs", options.save_inputs,
                 "@DIR: write each input as a .npy file there");
  app.add_option(
      "--output", options.outputs,
      "@DIR: write each output as NAME.npy, a sequence as NAME.items/0.npy, 1.npy, …; @FILE.npz: "
      "all in one file; NAME,… or all: also output these intermediate values");
  app.add_option("--expect", options.expect, "@DIR: compare outputs with the files there");
  app.add_option("--atol", options.absolute, "absolute tolerance of --expect")->check(tolerance());
  app.add_option("--rtol", options.relative, "relative tolerance of --expect")->check(tolerance());
  app.add_option("--target", options.target,
                 concat(kTargetHelp, "; by default cpu, if the model can be compiled"));
  add_precision(app, options.precision);
  add_threads(app, options.threads);
  add_untuned(app, options.untuned);
  add_preferred(app, options.preferred);
  add_trust(app, options.trust_program);
  app.add_option("--max-trips", options.max_trips,
                 "limit of the iterations of all loops (default: none)")
      ->check(whole_number(1, std::numeric_limits<std::int64_t>::max()));
  app.add_flag("--check-nan", options.check_nan, kCheckNanHelp)->type_name("[=DIR]");
  app.add_option("--check-range", options.check_range, kCheckRangeHelp);
  app.add_option("--dump-values", options.dump_values, kDumpHelp);
  app.add_option("--data", options.data,
                 "@DIR of .npz files with many samples each; writes one file for each to "
                 "--output=@DIR; several processes share the files");
}

}  // namespace tenon::cli
