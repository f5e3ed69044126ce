#include "cli/pass_selection.h"

namespace tenon::cli {

PipelineOptions pipeline_of(const PassSelection& choice, PipelineOptions settings) {
  if (!choice.passes.empty()) settings.passes = choice.passes;
  settings.without = choice.without;
  settings.stop_after = choice.stop_after;
  for (const std::string& setting : choice.set) set_option(settings.pass_options, setting);
  return settings;
}

}  // namespace tenon::cli
