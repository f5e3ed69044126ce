#include "base/error.h"
#include "cli/convert_changes.h"
#include "cli/out.h"
#include "cli/tuning.h"
#include "driver/pipeline.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "train/document_step.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace tenon::cli {

int convert(const ConvertOptions& options, OutputFormat format) {
  return convert(options, ConvertChanges(), format);
}

int convert(const ConvertOptions& options, const ConvertChanges& changes, OutputFormat format) {
  models::SaveOptions settings;
  settings.onnx_opset = options.opset;
  settings.style = options.style;
  driver::CompileRequest tuning;
  tuning.target = target_of(options.target, "native", "");
  tuning.tune_seconds = tuning_seconds(options.tune);
  if (options.kernels || !options.tune.empty()) settings.note_kernels = kernel_notes(tuning);
  if (!changes.loss.empty() && !changes.trains)
    throw Error("--loss is for --train", ErrorKind::Usage);
  if (options.precision.empty() && options.batch == 0 && changes.shapes.empty() &&
      !changes.trains) {
    models::convert_model(models::ModelSource(options.model), options.to, options.output, settings);
  } else {
    Graph graph = changes.trains ? train::document_step(options.model, options.to, changes.loss)
                                 : models::ModelSource(options.model).graph();
    graph = models::with_fixed_shapes(std::move(graph), options.batch,
                                      models::parse_shapes(changes.shapes));
    if (!options.precision.empty()) {
      driver::PipelineOptions passes =
          driver::pipeline_for(driver::parse_target("native", options.precision));
      passes.passes = {"assign-precision"};
      graph = driver::run_pipeline(std::move(graph), passes);
    }
    models::save_model(graph, options.to, options.output, settings);
  }
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

}  // namespace tenon::cli
