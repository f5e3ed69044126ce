#include "cli/pass_selection.h"

namespace tenon::cli {

driver::PipelineOptions pipeline_of(const PassSelection& choice, driver::PipelineOptions settings) {
  if (!choice.passes.empty()) settings.passes = choice.passes;
  settings.without = choice.without;
  settings.stop_after = choice.stop_after;
  for (const std::string& setting : choice.set) passes::set_option(settings.pass_options, setting);
  return settings;
}

}  // namespace tenon::cli
