#include "cli/commands.h"
#include "cli/tuning.h"
#include "driver/model.h"

namespace tenon::cli {

int convert(const ConvertOptions& options) {
  SaveOptions settings;
  settings.onnx_opset = options.opset;
  settings.style = options.style;
  const std::optional<TuningCache> timings = options.kernels ? known_timings() : std::nullopt;
  settings.timings = timings ? &*timings : nullptr;
  convert_model(options.model, options.to, options.output, settings);
  return 0;
}

}  // namespace tenon::cli
