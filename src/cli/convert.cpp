#include <iostream>

#include "cli/commands.h"
#include "driver/model.h"

namespace tenon::cli {

int convert(const ConvertOptions& options) {
  SaveOptions settings;
  settings.onnx_opset = options.opset;
  settings.style = options.style;
  convert_model(options.model, options.to, options.output, settings);
  return 0;
}

}  // namespace tenon::cli
