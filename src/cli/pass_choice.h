#pragma once

#include "cli/commands.h"
#include "driver/pipeline.h"

namespace tenon::cli {

/// What --passes, --without, --stop-after and --set ask for. Throws Error (Usage) for a setting
/// that is none. Of what they say nothing about, `settings` has it.
PipelineOptions pipeline_of(const PassChoice& choice, PipelineOptions settings = {});

}  // namespace tenon::cli
