#include <iostream>

#include "base/error.h"
#include "cli/commands.h"
#include "driver/model.h"
#include "driver/pipeline.h"
#include "ir/text.h"

namespace tenon::cli {

int opt(const OptOptions& options, OutputFormat) {
  PipelineOptions settings;
  settings.passes = options.passes;
  settings.without = options.without;
  settings.stop_after = options.stop_after;
  settings.verify_each = options.verify_each;
  for (const std::string& setting : options.set) set_option(settings.pass_options, setting);
  const Graph graph = run_pipeline(load_model(options.model), settings);
  SaveOptions save_options;
  save_options.style = options.style;
  if (!options.output.empty()) save_model(graph, options.to, options.output, save_options);
  if (options.print) {
    print(graph, std::cout);
  } else if (options.output.empty()) {
    std::cout << model_text(graph, options.to, save_options);
  }
  return 0;
}

}  // namespace tenon::cli
