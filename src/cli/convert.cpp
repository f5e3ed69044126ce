#include "app/convert.h"

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/tuning.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace tenon::cli {

namespace {

int convert(const app::ConvertOptions& options, OutputFormat format) {
  app::convert(options, on_terminal({}));
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json = {
        {"model", options.model}, {"format", options.to}, {"output", options.output}};
    std::error_code no_file;  // such as a pipe
    const std::uintmax_t bytes = std::filesystem::file_size(options.output, no_file);
    if (!no_file) json["bytes"] = bytes;
    out() << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
  return 0;
}

}  // namespace

void add_convert(Commands& commands) {
  const auto [app, options] =
      commands.add<app::ConvertOptions>("convert", "Translate a model", convert);
  app.add_option("model", options.model, kModelHelp)->required();
  app.add_option("--to", options.to, "the format to write")->required();
  app.add_option("-o,--output", options.output, "the file to write")->required();
  app.add_option("--style", options.style, "a variant of that format");
  app.add_option("--precision", options.precision, "fp16 or bf16: mixed precision");
  add_batch(app, options.batch);
  add_shapes(app, options.shapes);
  app.add_flag("--kernels", options.kernels, kKernelsHelp);
  app.add_option("--target", options.target,
                 "with --kernels: cpu (default) or cuda[:sm_90a], which also names "
                 "untuned choices, marked as such");
  app.add_flag("--tune", options.tune,
               "with --kernels --target=cuda: time the kernels on the device first");
  app.add_flag("--train", options.trains,
               "a training step: the model, its loss and the gradients of its "
               "parameters, in the format's operators");
  app.add_option("--loss", options.loss,
                 "with --train: as for train; or l2: half the sum of squares of the output");
  app.add_option("--opset", options.opset,
                 "ONNX opset (default: the lowest from 13 on with all operators of the graph)")
      ->check(whole_number(1, 1000));
}

}  // namespace tenon::cli
