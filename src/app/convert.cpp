#include "app/convert.h"

#include "app/compile_request.h"
#include "app/targets.h"
#include "base/error.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/rebatch.h"
#include "train/document_step.h"

#include <utility>

namespace tenon::app {

void convert(const ConvertOptions& options, driver::CompileRequest request) {
  models::SaveOptions settings;
  settings.onnx_opset = options.opset;
  settings.style = options.style;
  request.target = target_of(options.target, "native", "");
  request.tune_seconds = tuning_seconds(options.tune);
  if (options.kernels || !options.tune.empty())
    settings.note_kernels = kernel_notes(std::move(request));
  if (!options.loss.empty() && !options.trains)
    throw Error("--loss is for --train", ErrorKind::Usage);
  if (options.precision.empty() && options.batch == 0 && options.shapes.empty() &&
      !options.trains) {
    models::convert_model(models::ModelSource(options.model), options.to, options.output, settings);
  } else {
    Graph graph = options.trains ? train::document_step(options.model, options.to, options.loss)
                                 : models::ModelSource(options.model).graph();
    graph = models::with_fixed_shapes(std::move(graph), options.batch,
                                      models::parse_shapes(options.shapes));
    if (!options.precision.empty()) {
      driver::PipelineOptions passes =
          driver::pipeline_for(driver::parse_target("native", options.precision));
      passes.passes = {"assign-precision"};
      graph = driver::run_pipeline(std::move(graph), passes);
    }
    models::save_model(graph, options.to, options.output, settings);
  }
}

}  // namespace tenon::app
