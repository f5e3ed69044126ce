#include "tune/device_tuning.h"

#include "base/error.h"
#include "base/text.h"
#include "host/compiled.h"
#include "models/inputs.h"
#include "runtime/cuda/describe.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace tenon::tune {
namespace {

// "cudnn#3" is the fourth algorithm of cuDNN.
std::string candidate_of(const std::string& step, std::size_t way) {
  const std::string library = step.substr(0, step.find('#'));
  return way == 0 ? library : concat(library, "#", way);
}

}  // namespace

DeviceNames device_names() {
  return {cuda::device_name, [] {
            std::string libraries;
            for (const auto& text : {cuda::blas_text, cuda::dnn_text}) {
              try {
                libraries += concat(libraries.empty() ? "" : ", ", text());
              } catch (const Error&) {  // a program that needs it reports the error
              }
            }
            return libraries;
          }};
}

TuningPlace device_place() {
  const DeviceNames names = device_names();
  return {names.device(), names.libraries(), 1};
}

TuningPlace library_tuning_place(TuningPlace kernels) {
  const std::size_t end = kernels.generator.find(", ");
  kernels.generator = end == std::string::npos ? "" : kernels.generator.substr(end + 2);
  return kernels;
}

std::optional<std::string> library_work(const Program& program, std::size_t step) {
  const Program::Step& at = program.steps[step];
  if (at.kind != Program::StepKind::Kernel) return std::nullopt;
  const std::string& library = program.kernels[at.kernel].library;
  if (library.empty()) return std::nullopt;
  std::string text = library;
  for (const Extent& extent : at.extents) {
    if (!extent.is_number()) return std::nullopt;
    text += concat(" ", extent.number());
  }
  return text;
}

std::vector<bool> use_tuned_candidates(const TuningCache& cache, const TuningPlace& place,
                                       Program& program, TuneReport& report) {
  std::vector<bool> is_open(program.steps.size(), false);
  std::set<std::string> met;
  for (std::size_t k = 0; k < program.steps.size(); ++k) {
    const std::optional<std::string> work = library_work(program, k);
    if (!work) continue;
    const bool is_new = met.insert(*work).second;
    report.kernels += is_new;
    const std::optional<TunedKernel> known = cache.find(place, *work);
    if (!known) {
      is_open[k] = is_new;
      continue;
    }
    report.known += is_new;
    program.steps[k].candidate = known->ranges.front().candidate;
  }
  return is_open;
}

void remember_candidates(TuningCache& cache, const TuningPlace& place, const Program& program,
                         const std::vector<TimedCandidates>& timed) {
  for (const TimedCandidates& step : timed) {
    const std::optional<std::string> work = library_work(program, step.step);
    if (!work) continue;
    TunedKernel kernel;
    kernel.place = place;
    kernel.work = *work;
    kernel.name = program.steps[step.step].name;
    const std::string& candidate = program.steps[step.step].candidate;
    for (std::size_t way = 0; way < step.seconds.size(); ++way) {
      if (std::isfinite(step.seconds[way]) && step.seconds[way] > 0)
        kernel.timings.push_back({candidate_of(candidate, way), 0, step.seconds[way], step.runs});
    }
    if (kernel.timings.empty()) continue;  // no candidate runs
    const auto best = std::ranges::min_element(kernel.timings, {}, &TunedKernel::Timing::seconds);
    kernel.ranges = {{0, 0, best->candidate}};
    cache.store(kernel);
  }
}

TuneReport tune_on_device(TuningCache& cache, Program& program, bool times) {
  const TuningPlace place = device_place();
  TuneReport report;
  const std::vector<bool> is_open = use_tuned_candidates(cache, place, program, report);
  const auto open = static_cast<std::size_t>(std::ranges::count(is_open, true));
  if (!times || open == 0) return report;
  CompiledModel model(Program(program), 1);
  model.prepare(models::random_inputs(input_ports(program), 1, {}));
  remember_candidates(cache, place, program, model.executor().time_candidates(is_open));
  TuneReport after;
  use_tuned_candidates(cache, place, program, after);
  report.timed = after.known - report.known;
  report.failed = open - report.timed;
  return report;
}

}  // namespace tenon::tune
