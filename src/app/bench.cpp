#include "app/bench.h"

#include "app/bench_steps.h"
#include "app/timed_program.h"
#include "app/value_files.h"
#include "base/error.h"
#include "base/text.h"
#include "host/resident.h"
#include "models/inputs.h"
#include "models/model_source.h"
#include "models/summary.h"
#include "profile/device_peak.h"
#include "profile/record.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <numeric>

namespace tenon::app {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

double ms_since(Clock::time_point begin) { return Milliseconds(Clock::now() - begin).count(); }

// CPU time of all threads: not affected by other load on the machine.
double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

HostTimes host_times(CompiledModel& model, std::size_t most_runs, double seconds, int contexts) {
  HostTimes times;
  const auto start = Clock::now();
  while (times.sorted_ms.size() < most_runs &&
         (times.sorted_ms.size() < 3 || ms_since(start) < seconds * 1000)) {
    const auto begin = Clock::now();
    model.run_prepared();
    times.sorted_ms.push_back(ms_since(begin));
  }
  std::ranges::sort(times.sorted_ms);
  if (contexts < 1) return times;
  times.contexts = static_cast<std::size_t>(contexts);
  const double run_s = BenchResult::percentile(times.sorted_ms, 50) / 1e3;
  const auto runs =
      std::max(4 * times.contexts, static_cast<std::size_t>(std::min(seconds / run_s, 1e5)));
  times.runs_per_s = static_cast<double>(runs) / model.in_flight(times.contexts).run(runs);
  return times;
}

// Zero if a program runs on a device for which the benchmark cannot be compiled.
profile::MachinePeak device_peak(const Program& program) {
  try {
    return profile::measure_device_peak_for(program);
  } catch (const Error&) {
    return {};
  }
}

void require_consistent(const BenchOptions& options, bool is_program) {
  if (!is_program) return;
  if (!options.tune.empty()) {
    throw Error("a program is tuned when it is compiled", ErrorKind::Usage)
        .hint("give the model, or compile it with --tune");
  }
  if (!options.train.empty())
    throw Error("a program has no gradient", ErrorKind::Usage).hint("give the model");
  if (options.batch > 0) {
    throw Error("a program has the batch it was compiled for", ErrorKind::Usage)
        .hint("give the model, or compile it with --batch");
  }
  if (!options.budget.empty()) {
    throw Error("a program's memory is planned when it is compiled", ErrorKind::Usage)
        .hint("give the model");
  }
}

class Bench {
 public:
  Bench(const BenchOptions& options, const Compile& compile)
      : options_(options), begin_(Clock::now()), source_(options.model) {
    std::optional<Program> given = source_.program(options.trust_program);
    result_.is_program = given.has_value();
    require_consistent(options, result_.is_program);
    driver::CompileRequest request = compile_request(options, options.tune);
    request.keeps_record = options.every_step && request.target.is_gpu();
    if (!options.shapes.empty()) request.specialised_shapes = {join(options.shapes, ",")};
    made_ = timed_program(source_, std::move(given),
                          {options.batch,
                           options.shapes,
                           options.train,
                           options.loss,
                           {options.budget, {}, options.swap, options.threads, options.split},
                           options.output.empty()},  // written outputs are those of one step

                          request, compile);
  }

  BenchResult run() {
    load();
    prepare();
    time_runs();
    measure_rates();
    if (made_.planner) result_.budget = made_.planner->report();
    if (options_.every_step) {
      result_.steps = ranked_steps(*model_, work_.value_or(std::vector<models::NodeWork>{}));
      result_.reasons = reasons_of(made_.record);
    }
    return std::move(result_);
  }

 private:
  void load() {
    if (!result_.is_program) result_.compile_ms = ms_since(begin_);
    const Graph ports = input_ports(made_.program);
    const auto load_begin = result_.is_program ? begin_ : Clock::now();
    hold(std::move(made_.program));
    result_.load_ms = ms_since(load_begin);
    inputs_ = models::read_inputs(ports, options_.inputs, models::parse_shapes(options_.shapes));
    for (passes::State& state : made_.step.states) {
      inputs_[state.input] = state.initial.materialise();
      state.initial = {};
    }
    made_.step.graph = {};  // it holds the initial values of the states
    save_values(names_of(model_->program(), model_->program().inputs), inputs_,
                options_.save_inputs, "--save-inputs");
  }

  void prepare() {
    peak_before_ = peak_kilobytes();
    begin_resident_peak();
    is_dynamic_ = !model_->program().symbols.empty();
    const bool is_read_again = made_.planner || is_dynamic_;
    model_->prepare(is_read_again ? inputs_ : std::exchange(inputs_, {}));
    if (!made_.planner) return;
    // Learns from the second run: the first one touches cold memory.
    std::vector<double> seconds;
    model_->run_prepared();
    model_->run_prepared(seconds);
    if (made_.planner->learn(seconds)) {
      model_.reset();  // two arenas at once would exceed the budget
      hold(made_.planner->program());
    }
    // Discards the states of these runs, and the copy of the initial ones.
    model_->prepare(is_dynamic_ ? inputs_ : std::exchange(inputs_, {}));
    begin_resident_peak();
  }

  void time_runs() {
    const auto first = Clock::now();
    model_->run_prepared();
    result_.first_run_ms = ms_since(first);
    result_.first_output_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
            .count();
    for (int k = 1; k < options_.warm_up_runs; ++k) model_->run_prepared();

    const int least_runs = options_.iterations > 0 ? options_.iterations : options_.min_iterations;
    const int most_runs = options_.iterations > 0 ? options_.iterations : options_.max_iterations;
    std::vector<double>& samples = result_.samples_ms;
    const auto start = Clock::now();
    while (static_cast<int>(samples.size()) < most_runs &&
           (static_cast<int>(samples.size()) < least_runs ||
            ms_since(start) < options_.duration_s * 1000)) {
      const auto run_begin = Clock::now();
      if (model_->is_on_device()) {
        samples.push_back(model_->executor().replay() * 1e3);  // data on the device stays there
        continue;
      }
      const double processor_begin = processor_ms();
      model_->run_prepared();
      samples.push_back(ms_since(run_begin));
      result_.least_processor_ms =
          std::min(result_.least_processor_ms, processor_ms() - processor_begin);
    }
    save_values(names_of(model_->program(), model_->program().outputs), model_->outputs(),
                options_.output, "--output");
    // A training step has its states on the device.
    if (model_->is_on_device() && options_.train.empty()) {
      result_.by_host =
          host_times(*model_, samples.size(), options_.duration_s / 2, options_.contexts);
    }
    result_.sorted_ms = samples;
    std::ranges::sort(result_.sorted_ms);
  }

  void measure_rates() {
    if (is_dynamic_ && !result_.is_program) work_ = work_of(source_, inputs_);
    std::optional<double> flops;
    if (!is_dynamic_) flops = model_->totals().flops;
    if (work_) {
      flops = std::accumulate(
          work_->begin(), work_->end(), 0.0,
          [](double sum, const models::NodeWork& node) { return sum + node.flops; });
    }
    result_.run_peak_bytes = resident_peak_bytes();
    // Before measuring the machine peak, which takes memory.
    result_.peak_kilobytes = std::max(peak_before_, peak_kilobytes());
    result_.is_on_device = model_->is_on_device();
    result_.threads = model_->thread_count();
    result_.peak = result_.is_on_device ? device_peak(model_->program())
                                        : profile::measure_machine_peak(result_.threads);
    result_.arena_bytes = model_->executor().arena_bytes();
    result_.scratch_bytes = model_->executor().scratch_bytes();
    result_.pinned_bytes = model_->runner().pinned_bytes();
    result_.device_bytes = model_->runner().device_bytes();
    result_.constant_bytes = model_->totals().constant_bytes;
    if (!flops) return;
    const double median = result_.median_ms();
    result_.gflops = *flops / median / 1e6;
    result_.roofline_share =
        profile::least_ms(result_.peak, *flops, model_->totals().constant_bytes) / median;
  }

  void hold(Program program) {
    model_ = std::make_unique<CompiledModel>(std::move(program), options_.threads);
  }

  const BenchOptions& options_;
  Clock::time_point begin_;
  models::ModelSource source_;
  BenchResult result_;
  TimedProgram made_;
  std::unique_ptr<CompiledModel> model_;
  std::vector<Datum> inputs_;
  std::optional<std::vector<models::NodeWork>> work_;
  std::int64_t peak_before_ = 0;
  bool is_dynamic_ = false;
};

}  // namespace

double BenchResult::percentile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share / 100 * last + 0.5)];
}

BenchResult bench(const BenchOptions& options, const Compile& compile) {
  if (options.min_iterations > options.max_iterations) {
    throw Error("--min-iterations is above --max-iterations", ErrorKind::Usage)
        .got(options.min_iterations, " and ", options.max_iterations);
  }
  prepare_folder(options.save_inputs, "--save-inputs");
  prepare_folder(options.output, "--output");
  return Bench(options, compile).run();
}

}  // namespace tenon::app
