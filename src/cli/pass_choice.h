#pragma once

#include "cli/commands.h"
#include "driver/pipeline.h"

namespace tenon::cli {

/// What --passes, --without, --stop-after and --set ask for. Throws Error (Usage) for a setting that is none.
PipelineOptions pipeline_of(const PassChoice& choice);

}  // namespace tenon::cli
