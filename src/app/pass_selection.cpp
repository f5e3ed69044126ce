#include "app/pass_selection.h"

#include "models/inputs.h"
#include "passes/train/train.h"

#include <utility>

namespace tenon::app {

driver::PipelineOptions pipeline_of(const PassSelection& choice, driver::PipelineOptions settings) {
  if (!choice.passes.empty()) settings.passes = choice.passes;
  settings.without = choice.without;
  settings.stop_after = choice.stop_after;
  for (const std::string& setting : choice.set) passes::set_option(settings.pass_options, setting);
  return settings;
}

Graph transform(Graph graph, const PassSelection& choice,
                const std::map<std::string, Shape>& shapes) {
  const bool only_shapes = !shapes.empty() && choice.passes.empty() && choice.without.empty() &&
                           choice.stop_after.empty() && choice.set.empty();
  const driver::PipelineOptions pipeline = pipeline_of(choice);
  driver::chosen_passes(pipeline);  // refuses unknown names first
  if (!shapes.empty()) {
    const DimBindings extents = models::symbol_values(graph, shapes);
    graph = passes::with_symbols(std::move(graph), extents);
  }
  return only_shapes ? graph : driver::run_pipeline(std::move(graph), pipeline);
}

}  // namespace tenon::app
