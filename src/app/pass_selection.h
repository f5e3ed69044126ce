#pragma once

#include "driver/pipeline.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::app {

/// Selection and options of passes.
struct PassSelection {
  std::string stop_after;
  std::vector<std::string> passes, without, set;
};

/// Returns the options of --passes, --without, --stop-after and --set; `settings` has the defaults.
/// Throws Error (Usage) for an unknown setting.
driver::PipelineOptions pipeline_of(const PassSelection& choice,
                                    driver::PipelineOptions settings = {});

/// Runs the chosen passes with these extents of inputs; with extents alone, only replaces symbols.
/// Throws Error (Usage) for an unknown pass.
Graph transform(Graph graph, const PassSelection& choice,
                const std::map<std::string, Shape>& shapes);

}  // namespace tenon::app
