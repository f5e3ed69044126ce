#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "driver/compiled.h"
#include "driver/model.h"
#include "driver/training/curve.h"
#include "driver/training/options.h"
#include "driver/training/trainer.h"
#include "program/file.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

namespace tenon::cli {
namespace {

std::string fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string duration(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  char text[48];
  if (whole >= 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60,
                  whole % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", whole / 60, whole % 60);
  }
  return text;
}

std::string in_words(double loss, double accuracy, bool has_accuracy) {
  return concat("loss ", fixed(loss, 4),
                has_accuracy ? concat(", accuracy ", fixed(100 * accuracy, 1), " %") : "");
}

// On a terminal one line that is written over; elsewhere a line now and then.
class ProgressLine {
 public:
  void show(const TrainProgress& at, bool has_accuracy) {
    const bool is_last = at.step == at.step_count;
    if (!is_terminal_ && !is_last && at.step != 1 && at.step * 10 / at.step_count == last_tenth_)
      return;
    last_tenth_ = at.step * 10 / at.step_count;
    constexpr int kCells = 24;
    const auto done = static_cast<int>(kCells * at.step / at.step_count);
    std::string bar(static_cast<std::size_t>(done), '=');
    bar.resize(kCells, ' ');
    const std::string text =
        concat("epoch ", at.epoch, " [", bar, "] step ", at.step, "/", at.step_count, "  ",
               in_words(at.loss, at.accuracy, has_accuracy), "  ", fixed(at.samples_per_s, 1),
               " samples/s  ", duration(at.seconds_left), " left");
    err() << (is_terminal_ ? "\r\x1b[K" : "") << text << (is_terminal_ ? "" : "\n") << std::flush;
  }
  void end() const {
    if (is_terminal_) err() << "\r\x1b[K" << std::flush;
  }

 private:
  bool is_terminal_ = isatty(STDERR_FILENO) != 0;
  std::int64_t last_tenth_ = -1;
};

void write_text(const std::string& text, const std::string& path) {
  NewFile file(path);
  file.out() << text;
  file.finish();
}

void write_model(const Graph& model, const std::string& path) {
  if (path.ends_with(".tnn")) {
    write_program(compile_graph(model), path);
  } else if (path.ends_with(".onnx")) {
    save_model(model, "onnx", path);
  } else if (path.ends_with(".tenon")) {
    save_model(model, "tenon", path);
  } else {
    throw Error("cannot tell the format of the trained model", ErrorKind::Usage)
        .expected("a file that ends in .onnx, .tnn or .tenon")
        .got(path);
  }
}

std::string curve_path(const TrainCommandOptions& options) {
  if (!options.curve.empty() || options.trainer.checkpoint.empty()) return options.curve;
  return (std::filesystem::path(options.trainer.checkpoint) / "curve.svg").string();
}

void print_result(const TrainResult& result, const TrainCommandOptions& options,
                  OutputFormat format) {
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json{{"model", options.model},
                                {"steps", result.steps},
                                {"was_stopped", result.was_stopped},
                                {"samples_per_s", result.samples_per_s}};
    if (!result.curve.empty()) {
      for (const CurvePoint& point : result.curve) {
        json[point.is_validation ? "validation" : "training"].push_back(
            {{"step", point.step}, {"loss", point.loss}, {"accuracy", point.accuracy}});
      }
    }
    out() << json.dump(2) << "\n";
    return;
  }
  out() << (result.was_stopped ? "stopped after " : "trained for ") << result.steps << " steps at "
        << fixed(result.samples_per_s, 1) << " samples/s";
  if (result.validation) {
    out() << "; held out: "
          << in_words(result.validation->loss, result.validation->accuracy, result.has_accuracy);
  }
  out() << "\n";
}

}  // namespace

int train(const TrainCommandOptions& given, OutputFormat format) {
  TrainCommandOptions options = given;
  TrainOptions& train = options.trainer.train;
  options.trainer.target = target_text(options.target, "native");
  if (!options.loss.empty()) set_loss(train.loss, options.loss);
  if (!options.optimizer.empty()) set_optimizer(train, options.optimizer);
  if (!options.schedule.empty()) set_schedule(train.schedule, options.schedule);
  if (options.print) {
    out() << print(tenon::train(load_model(options.model), train));
    return 0;
  }
  if (!options.output.empty() && !options.output.ends_with(".onnx") &&
      !options.output.ends_with(".tnn") && !options.output.ends_with(".tenon")) {
    write_model({}, options.output);  // says what is wrong before hours of training
  }
  Trainer trainer(load_model(options.model), options.trainer);
  if (!trainer.note().empty()) err() << trainer.note() << "\n";
  err() << trainer.sample_count() << " samples, " << trainer.step_count() << " steps of "
        << options.trainer.batch_size << "; a step is " << trainer.session().program().steps.size()
        << " kernels, " << format_bytes(trainer.session().arena_bytes()) << " arena\n";
  const bool has_accuracy = static_cast<bool>(trainer.session().graph().find(kAccuracy));
  ProgressLine line;
  const Interrupt interrupt;
  trainer.should_stop = [] { return Interrupt::is_asked(); };
  trainer.on_progress = [&](const TrainProgress& at) { line.show(at, has_accuracy); };
  trainer.on_validation = [&](const CurvePoint& point) {
    line.end();
    err() << "step " << point.step << ": held out "
          << in_words(point.loss, point.accuracy, has_accuracy) << "\n";
  };
  const TrainResult result = trainer.run();
  line.end();
  if (const std::string path = curve_path(options); !path.empty()) {
    write_text(curve_svg(result.curve, options.model, has_accuracy), path);
  }
  if (!options.output.empty()) write_model(result.model, options.output);
  print_result(result, options, format);
  return 0;
}

}  // namespace tenon::cli
