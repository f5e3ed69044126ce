#include "profile/record.h"

#include "base/error.h"
#include "base/text.h"
#include "driver/explain.h"
#include "models/inputs.h"
#include "profile/counters.h"
#include "profile/fill.h"
#include "profile/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

namespace tenon::profile {
namespace {

constexpr std::uint8_t kUntouched = 0xa5;
constexpr std::size_t kLine = 64;

// Runs a model as its caller would: copies inputs to their buffers and outputs to their
// destinations.
class WatchedRuns {
 public:
  WatchedRuns(CompiledModel& model, const std::vector<Datum>& inputs, const RecordOptions& options)
      : model_(model), inputs_(inputs), options_(options) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Datum copy = inputs[k];
      std::byte* place = nullptr;
      if (copy.is_tensor() && copy.tensor().dtype() != DType::String &&
          !is_among(k, options.state_inputs))
        place = copy.tensor().mutable_bytes().data();
      staged_.push_back(place);
      copies_.push_back(std::move(copy));
    }
    model_.prepare(copies_);
  }

  void run(WatchedRun& seen) {
    seen.copies.clear();
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (staged_[k] == nullptr) continue;
      copy(seen, k, true, staged_[k], inputs_[k].tensor().bytes());
    }
    model_.run_watched(seen.events);
    const std::vector<Datum> made = model_.outputs();
    results_.resize(made.size());
    for (std::size_t k = 0; k < made.size(); ++k) {
      if (!made[k].is_tensor() || made[k].tensor().dtype() == DType::String ||
          is_among(k, options_.state_outputs))
        continue;
      results_[k].resize(made[k].tensor().byte_size());
      copy(seen, k, false, results_[k].data(), made[k].tensor().bytes());
    }
  }

 private:
  static bool is_among(std::size_t port, const std::vector<std::size_t>& ports) {
    return std::find(ports.begin(), ports.end(), port) != ports.end();
  }

  static void copy(WatchedRun& seen, std::size_t port, bool is_input, std::byte* to,
                   std::span<const std::byte> from) {
    WatchedRun::Copy event{port, is_input};
    event.start = ticks();
    event.kern = ticks();
    if (!from.empty()) std::memcpy(to, from.data(), from.size());
    event.end = ticks();
    seen.copies.push_back(event);
  }

  CompiledModel& model_;
  const std::vector<Datum>& inputs_;
  const RecordOptions& options_;
  std::vector<Datum> copies_;
  std::vector<std::byte*> staged_;  // null for non-tensors and for states
  std::vector<std::vector<std::byte>> results_;
};

// Measures the part of the arena that a run writes, by cache lines.
std::uint64_t touched_bytes(CompiledModel& model) {
  const std::span<std::byte> arena = model.executor().arena();
  if (!arena.empty()) std::memset(arena.data(), kUntouched, arena.size());
  model.run_prepared();
  std::uint64_t touched = 0;
  for (std::size_t at = 0; at < arena.size(); at += kLine) {
    const std::span<std::byte> line = arena.subspan(at, std::min(kLine, arena.size() - at));
    const bool is_same = std::all_of(
        line.begin(), line.end(), [](std::byte value) { return value == std::byte{kUntouched}; });
    touched += is_same ? 0 : line.size();
  }
  return touched;
}

// One run on this thread only, because counters are per thread.
void add_counters(const CompiledModel& model, const std::vector<Datum>& inputs, Profile& profile) {
  const HardwareCounters counters;
  if (!counters.problem().empty()) profile.notes.push_back(counters.problem());
  if (!counters.is_counting()) return;
  if (!model.program().is_kernel_only()) {
    profile.notes.emplace_back(
        "hardware counters: not read for programs with other steps than kernels");
    return;
  }
  CompiledModel alone(model.program(), 1);
  alone.prepare(inputs);
  alone.run_prepared();
  std::map<std::size_t, Profile::Counters> by_step;
  Profile::Counters before = counters.read();
  Observers observers;
  observers.after_step = [&](const KernelRunner&, std::size_t step) {
    const Profile::Counters now = counters.read();
    by_step[step] = {now.cycles - before.cycles, now.instructions - before.instructions,
                     now.cache_misses - before.cache_misses};
    before = counters.read();
  };
  alone.run_observed(observers);
  std::size_t at = 0;
  for (const auto& [number, seen] : by_step) {
    while (at < profile.steps.size() && profile.steps[at].kind != Profile::Kind::Kernel) ++at;
    if (at < profile.steps.size()) profile.steps[at++].counters = seen;
  }
}

double seconds_of(std::uint64_t tick_count) {
  return static_cast<double>(tick_count) * seconds_per_tick();
}

template <class Run>
double timed(const Run& run) {
  const std::uint64_t begin = ticks();
  run();
  return seconds_of(ticks() - begin);
}

// Returns the sampling stride: one step in `stride` is timed per run. It is 1 if reading the clock
// after every step is a small share of the run; with steps of some nanoseconds, each run times
// different steps.
std::uint32_t stride_of(CompiledModel& model, const RecordOptions& options) {
  constexpr double kMost = 0.03;  // of the run
  constexpr double kKept = 1.5;   // cost of reading the clock and storing the value, in clock reads
  constexpr double kSamples = 8;  // least number of samples per step
  if (!model.program().is_kernel_only() || model.is_on_device()) return 1;
  double least = INFINITY;
  for (int k = 0; k < 5; ++k) least = std::min(least, timed([&] { model.run_prepared(); }));
  const double asking = kKept * seconds_of(ticks_to_ask()) *
                        static_cast<double>(model.program().steps.size()) / least;
  if (asking <= kMost) return 1;
  const double runs = std::min<double>(
      options.most_runs, std::max<double>(options.least_runs, options.duration_s / least));
  // A step that is timed alone takes two clock reads.
  const double wanted = std::min(std::ceil(2 * asking / kMost), std::floor(runs / kSamples));
  return static_cast<std::uint32_t>(std::clamp<double>(wanted, 1, Watch::kLargestStride));
}

// Alternates watched and plain runs, so that disturbances affect both, and reports the median ratio
// of adjacent pairs. The order within a pair alternates.
void add_overhead(CompiledModel& model, const RecordOptions& options, std::uint32_t stride,
                  Profile& profile) {
  RunEvents events;
  std::vector<double> plain, watched, ratios;
  const std::uint64_t begin = ticks();
  for (std::uint32_t k = 0; static_cast<int>(k) < std::max(options.least_runs, 2) ||
                            seconds_of(ticks() - begin) < 2 * options.duration_s;
       ++k) {
    model.executor().sample(stride, k % stride);
    const auto with = [&] { watched.push_back(timed([&] { model.run_watched(events); })); };
    if (k % 2 == 0) with();
    plain.push_back(timed([&] { model.run_prepared(); }));
    if (k % 2 != 0) with();
    ratios.push_back(watched.back() / plain.back());
  }
  const auto text = [](double ratio) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.4f", ratio);
    return std::string(digits);
  };
  const std::size_t pairs = plain.size();
  const double least = spread_of(watched).least / spread_of(plain).least;
  profile.notes.push_back(concat("watching: a run takes ", text(spread_of(ratios).median),
                                 " times as long by the median of ", pairs, " pairs of runs, ",
                                 text(least), " by the least of each"));
}

}  // namespace

Profile record_profile(CompiledModel& model, const std::vector<Datum>& inputs,
                       const driver::CompileRecord* compiled, const RecordOptions& options) {
  seconds_per_tick();  // calibrated before other measurements
  WatchedRuns runs(model, inputs, options);
  WatchedRun seen;
  Profile profile;
  runs.run(seen);
  profile.first_run_seconds = seconds_of(seen.events.end - seen.events.begin);
  profile.touched_bytes = touched_bytes(model);
  profile.budget_bytes = options.budget_bytes;
  profile.warm_up_runs = static_cast<std::uint32_t>(std::max(options.warm_up_runs, 2));
  for (std::uint32_t k = 2; k < profile.warm_up_runs; ++k) runs.run(seen);

  StepSamples samples;
  std::vector<double> run_seconds;
  const std::uint32_t stride = stride_of(model, options);
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  while (static_cast<int>(run_seconds.size()) < options.most_runs &&
         (static_cast<int>(run_seconds.size()) < options.least_runs ||
          elapsed() < options.duration_s)) {
    model.executor().sample(stride, static_cast<std::uint32_t>(run_seconds.size() % stride));
    runs.run(seen);
    run_seconds.push_back(model.is_on_device() ? model.executor().replay()
                                               : seconds_of(seen.events.end - seen.events.begin));
    samples.add(seen, stride > 1 ? ticks_to_ask() : 0);
  }
  profile.runs = static_cast<std::uint32_t>(run_seconds.size());
  profile.last_run_seconds = run_seconds.empty() ? 0 : run_seconds.back();
  profile.run_seconds = spread_of(std::move(run_seconds));
  profile.thread_count = static_cast<std::uint32_t>(model.thread_count());
  profile.device = model.is_on_device() ? model.program().target : processor_name();
  if (model.is_on_device())
    profile.notes.emplace_back(
        "steps were timed one at a time, the host waiting for each; a run's time is that of the "
        "captured graph, without copies");
  if (options.with_overhead) add_overhead(model, options, stride, profile);
  if (stride > 1) {
    // The timeline shows every step.
    model.executor().sample(1, 0);
    runs.run(seen);
    profile.last_run_seconds = seconds_of(seen.events.end - seen.events.begin);
    profile.notes.push_back(concat(
        "steps are so short that reading the clock after each would disturb them: a run timed one "
        "in ",
        stride, ", each run others; the timeline is of a run in which all were"));
  }
  fill_profile(profile, model, seen, samples, inputs, compiled);
  if (options.with_counters && !model.is_on_device()) add_counters(model, inputs, profile);
  if (options.with_ceilings && !model.is_on_device()) {
    const MachinePeak peak = cached_machine_peak(model.thread_count());
    profile.ceilings = {peak.flops_per_s, peak.bytes_per_s, peak.cache_bytes_per_s,
                        peak.cache_bytes};
  }
  return profile;
}

}  // namespace tenon::profile
