#include "app/bench_steps.h"

#include "driver/pipeline.h"
#include "models/inputs.h"
#include "models/rebatch.h"

#include <algorithm>
#include <map>
#include <ranges>

namespace tenon::app {

std::optional<std::vector<models::NodeWork>> work_of(const models::ModelSource& source,
                                                     const std::vector<Datum>& inputs) {
  const Graph graph = driver::run_pipeline(source.graph(), {});
  std::map<std::string, Shape> shapes;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].is_tensor())
      shapes[graph.value(graph.inputs()[k]).name] = inputs[k].tensor().shape();
  }
  return models::work_at(graph, models::symbol_values(graph, shapes));
}

std::vector<SlowStep> ranked_steps(CompiledModel& model,
                                   const std::vector<models::NodeWork>& work) {
  std::vector<StepTime> times = model.timed_steps(kStepRuns);
  std::map<std::string, int> runs;
  for (const StepTime& step : times) runs[step.value] += step.seconds > 0;
  for (StepTime& step : times) {
    const auto node = std::ranges::find(work, step.value, &models::NodeWork::name);
    if (node == work.end() || runs[step.value] != 1) continue;
    if (step.flops == 0) step.flops = kStepRuns * node->flops;
    if (step.bytes == 0) step.bytes = kStepRuns * node->bytes;
  }
  std::vector<SlowStep> steps;
  double total = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    if (times[k].seconds > 0) steps.push_back({k, times[k], 0});
    total += times[k].seconds;
  }
  for (SlowStep& step : steps) step.share = step.time.seconds / total;
  std::stable_sort(steps.begin(), steps.end(), [](const SlowStep& a, const SlowStep& b) {
    return a.time.seconds > b.time.seconds;
  });
  return steps;
}

std::map<std::pair<std::string, std::string>, std::string> reasons_of(
    const driver::CompileRecord& record) {
  std::map<std::pair<std::string, std::string>, std::string> reasons;
  for (const codegen::Decision& decision : record.decisions) {
    const auto accepting = std::ranges::count_if(
        decision.candidates, [](const auto& option) { return option.verdict.accepts; });
    if (!decision.node || accepting < 2) continue;
    const ValueId value = record.graph.node(decision.node).results.front();
    for (const codegen::Version& version : decision.selection.versions) {
      const std::string& name = decision.candidates[version.candidate].name;
      reasons[{record.graph.value(value).name, name}] = decision.selection.why;
    }
  }
  return reasons;
}

}  // namespace tenon::app
