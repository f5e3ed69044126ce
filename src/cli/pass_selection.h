#pragma once

#include "cli/commands.h"
#include "driver/pipeline.h"

namespace tenon::cli {

/// Returns the options of --passes, --without, --stop-after and --set; `settings` has the defaults.
/// Throws Error (Usage) for an unknown setting.
driver::PipelineOptions pipeline_of(const PassSelection& choice,
                                    driver::PipelineOptions settings = {});

}  // namespace tenon::cli
