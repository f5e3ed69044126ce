// Device contexts on NVIDIA GPUs: one stream, CUDA graphs, programmatic dependent launch.
#include "base/error.h"
#include "base/text.h"
#include "runtime/cuda/bound_steps.h"
#include "runtime/cuda/model.h"
#include "runtime/cuda/ports.h"
#include "runtime/cuda/tensor_map.h"
#include "runtime/cuda/transfers.h"
#include "runtime/memory.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <limits>

namespace tenon::inline runtime::cuda {
namespace {

// True if the host synchronizes after every step, to attribute failures to steps.
bool synchronizes_steps() { return std::getenv("TENON_GPU_STEPWISE") != nullptr; }

class CudaContext : public DeviceContext {
 public:
  explicit CudaContext(const CudaModel& model) : model_(model) {
    const Driver& cuda = driver();
    constexpr unsigned kNonBlocking = 1, kWithoutTimes = 2;
    cuda.require(cuda.create_stream(&stream_, kNonBlocking), "making a stream");
    cuda.require(cuda.create_event(&begin_, 0), "making an event");
    cuda.require(cuda.create_event(&end_, 0), "making an event");
    cuda.require(cuda.create_event(&launched_, kWithoutTimes), "making an event");
    error_.allocate(256, "a kernel's report");
  }
  CudaContext(const CudaContext&) = delete;
  ~CudaContext() override {
    const Driver& cuda = driver();
    cuda.synchronise(stream_);
    forget_graphs();
    cuda.destroy_event(begin_);
    cuda.destroy_event(end_);
    cuda.destroy_event(launched_);
    for (const Event moment : moments_) cuda.destroy_event(moment);
    cuda.destroy_stream(stream_);
  }

  void prepare(const BoundShapes& shapes, const Segment& segment) override;
  void call_after(std::vector<std::size_t> steps,
                  std::function<void(std::size_t step)> call) override {
    marks_ = std::move(steps);
    call_ = std::move(call);
  }
  void fetch_output(std::size_t output, void* target) override {
    ports_.fetch(ports_.input_count() + output, target, stream_);
  }
  void start(std::span<const void* const> inputs, std::span<void* const> outputs) override {
    begin(inputs, outputs, {});
  }
  void finish() override;
  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           std::span<double> seconds) override {
    begin(inputs, outputs, seconds);
    finish();
  }
  double replay() override;
  std::vector<TimedCandidates> time_candidates(const std::vector<bool>& steps) override;
  double time_steps(std::size_t first, std::size_t count) override;
  std::uint64_t arena_bytes() const override { return arena_.bytes(); }
  std::uint64_t scratch_bytes() const override { return scratch_.bytes(); }
  std::uint64_t pinned_bytes() const override {
    return transfers_.pinned_bytes() + ports_.pinned_bytes();
  }
  std::uint64_t device_bytes() const override {
    return model_.device_bytes() + arena_.bytes() + scratch_.bytes() + error_.bytes() +
           ports_.device_bytes();
  }

 private:
  void forget_graphs() {
    const Driver& cuda = driver();
    for (Recording& recording : recordings_) {
      if (recording.exec != nullptr) cuda.destroy_exec(recording.exec);
      recording.exec = nullptr;
    }
  }
  bool has_work() const { return !steps_.empty(); }
  GraphExec& exec() { return recordings_[current_].exec; }
  const Program& program() const { return model_.program(); }
  std::string step_text(std::size_t step) const {
    return concat("step ", step, " ('", program().steps[step].name, "')");
  }
  void take_arena(const BoundShapes& shapes);
  void take_scratch();
  void begin(std::span<const void* const> inputs, std::span<void* const> outputs,
             std::span<double> seconds);
  void launch(std::span<double> seconds);
  void await_steps();
  void begin_run();
  bool find_recording();
  void use_addresses();
  void enqueue(BoundStep& step, bool waits_for_copies = false);
  void launch_kernel(BoundStep& step, bool waits_for_copies);
  void enqueue_run();
  void start_steps();
  GraphExec recorded(const std::function<void()>& launches);
  void capture();
  double time_launches(const std::function<void()>& launches);
  void run_step_by_step(std::span<double> seconds);
  void run_with_calls();
  void have_moments(std::size_t count);
  void require_checks_passed(std::int64_t report);

  const CudaModel& model_;
  Stream stream_ = nullptr;
  Event begin_ = nullptr, end_ = nullptr;
  /// Recorded after the last step of the current run.
  Event launched_ = nullptr;
  /// Events before and after steps.
  std::vector<Event> moments_;
  /// The launches as a CUDA graph, for these addresses of the ports.
  struct Recording {
    std::vector<Address> addresses;
    GraphExec exec = nullptr;
  };
  /// The last two: double-buffered states alternate between two addresses.
  std::array<Recording, 2> recordings_ = {};
  std::size_t current_ = 0;
  DeviceMemory arena_, scratch_, error_;
  PortBuffers ports_;
  Transfers transfers_;
  std::vector<BoundStep> steps_;
  LibraryStepCache library_steps_;
  /// Steps of the program after which `call_` is called.
  std::vector<std::size_t> marks_;
  std::function<void(std::size_t)> call_;
  /// True if a kernel of this program has data checks.
  bool may_report_ = false;
  /// The caller's memory differs from the previous run.
  bool are_places_new_ = false;
};

void CudaContext::prepare(const BoundShapes& shapes, const Segment& segment) {
  const Driver& cuda = driver();
  cuda.require(cuda.synchronise(stream_), "waiting for the device");
  forget_graphs();
  steps_.clear();
  take_arena(shapes);
  ports_.place(shapes, segment, program());
  recordings_ = {};
  recordings_[current_].addresses = ports_.addresses();
  StepPlaces places{arena_.address(), error_.address(), {}};
  std::size_t port = 0;
  for (const auto* buffers : {&segment.reads, &segment.writes}) {
    for (const std::uint32_t id : *buffers) {
      places.ports[id] = {port, ports_.address(port)};
      ++port;
    }
  }
  steps_ = bind_steps(model_, shapes, segment, places, library_steps_);
  // Discards reports of an earlier binding's kernels.
  cuda.require(cuda.fill(error_.address(), 0, 8, stream_), "clearing a kernel's report");
  may_report_ = std::ranges::any_of(steps_, [&](const BoundStep& step) {
    return !program().kernels[program().steps[step.step].kernel].checks.empty();
  });
  take_scratch();
  transfers_.prepare(program(), shapes, arena_.address());
}

void CudaContext::take_arena(const BoundShapes& shapes) {
  if (arena_.try_allocate(shapes.planned_bytes)) return;
  throw no_arena(program(), shapes.all_bytes(), shapes.planned_bytes)
      .hint(free_memory_text(), "; smaller extents need less, training takes a --budget");
}

// Allocates scratch for one step at a time: the maximum over all steps.
void CudaContext::take_scratch() {
  const auto most = std::ranges::max_element(steps_, {}, &BoundStep::scratch_bytes);
  const std::uint64_t bytes = most == steps_.end() ? 0 : most->scratch_bytes;
  if (!scratch_.try_allocate(std::max<std::uint64_t>(bytes, 256))) {
    throw Error("no memory on the GPU for what kernels keep for themselves", ErrorKind::OutOfMemory)
        .at(step_text(most->step), ", which wants most")
        .expected(format_bytes(bytes))
        .got(free_memory_text());
  }
  for (BoundStep& step : steps_) step.use_scratch(scratch_.address());
}

void CudaContext::enqueue(BoundStep& step, bool waits_for_copies) {
  if (!step.library) return launch_kernel(step, waits_for_copies);
  try {
    step.library->enqueue(stream_, step.values, scratch_.address(), step.variant);
  } catch (Error& error) {
    throw error.at(step_text(step.step));
  }
}

void CudaContext::launch_kernel(BoundStep& step, bool waits_for_copies) {
  std::vector<void*> parameters;
  for (std::uint64_t& value : step.values) parameters.push_back(&value);
  const Driver& cuda = driver();
  for (BoundStep::Map& map : step.maps) {
    const Address address = step.values[map.map->buffer];
    if (map.rows > 0 && map.address != address) {  // the address changed since the last run
      map.encoded = encode_map(*map.map, map.rows, map.element_bytes, address);
      map.address = address;
    }
    parameters.push_back(&map.encoded);
  }
  // Programmatic dependent launch: blocks may start before the preceding kernel ends; each waits
  // for it first (`codegen/cuda/prelude.cpp`). After library kernels this costs more than it gains;
  // after copies the dependency is not only a kernel.
  LaunchAttribute starts_early{LaunchAttribute::kProgrammaticSerialisation, {}, 1, {}};
  LaunchConfig config{step.blocks, 1,       1, step.threads, 1, 1, step.shared_bytes,
                      stream_,     nullptr, 0};
  const bool follows_own = &step != steps_.data() && !(&step - 1)->library;
  if (cuda.major >= 9 && follows_own && !waits_for_copies) {
    config.attributes = &starts_early;
    config.attribute_count = 1;
  }
  const int status = cuda.launch(&config, step.function, parameters.data(), nullptr);
  if (status == 0) return;
  throw cuda.failure(status, "launching a kernel").at(step_text(step.step));
}

void CudaContext::begin_run() {
  const Driver& cuda = driver();
  // Clearing the report is a launch that delays kernels.
  if (may_report_) cuda.require(cuda.fill(error_.address(), 0, 8, stream_), "running");
  transfers_.begin_run();
}

void CudaContext::enqueue_run() {
  begin_run();
  for (BoundStep& step : steps_) enqueue(step, transfers_.before(step.step, stream_));
  transfers_.end_run(stream_);
}

// Selects the recording for the present addresses; returns false if it is a new one.
bool CudaContext::find_recording() {
  const std::vector<Address> addresses = ports_.addresses();
  for (const bool is_other : {false, true}) {
    if (recordings_[is_other ? 1 - current_ : current_].addresses != addresses) continue;
    if (is_other) current_ = 1 - current_;
    return true;
  }
  current_ = 1 - current_;
  if (exec() != nullptr) driver().destroy_exec(exec());
  recordings_[current_] = {addresses, nullptr};
  return false;
}

void CudaContext::use_addresses() {
  for (BoundStep& step : steps_) {
    for (const auto& [value, port] : step.ports) step.values[value] = ports_.address(port);
  }
}

// Captures launches as one CUDA graph.
GraphExec CudaContext::recorded(const std::function<void()>& launches) {
  const Driver& cuda = driver();
  constexpr int kThreadLocal = 1;
  Graph graph = nullptr;
  cuda.require(cuda.begin_capture(stream_, kThreadLocal), "recording launches");
  try {
    launches();
  } catch (...) {
    cuda.end_capture(stream_, &graph);
    if (graph != nullptr) cuda.destroy_graph(graph);
    throw;
  }
  cuda.require(cuda.end_capture(stream_, &graph), "recording launches");
  GraphExec made = nullptr;
  const int status = cuda.instantiate(&made, graph, 0);
  cuda.destroy_graph(graph);
  cuda.require(status, "recording launches");
  return made;
}

void CudaContext::capture() {
  exec() = recorded([&] { enqueue_run(); });
}

void CudaContext::start_steps() {
  if (exec() == nullptr && has_work()) capture();
  if (exec() == nullptr) return;
  const Driver& cuda = driver();
  cuda.require(cuda.launch_graph(exec(), stream_), "running");
}

void CudaContext::require_checks_passed(std::int64_t report) {
  if (report == 0) return;
  const auto number = static_cast<std::size_t>(report);
  for (const BoundStep& step : steps_) {
    const auto& checks = program().kernels[program().steps[step.step].kernel].checks;
    if (step.library || number > checks.size()) continue;
    throw Error(checks[number - 1]).at("program '", program().name, "' on the GPU");
  }
  throw Error("the data breaks an operator's rules")
      .at("program '", program().name, "' on the GPU");
}

void CudaContext::have_moments(std::size_t count) {
  const Driver& cuda = driver();
  while (moments_.size() < count) {
    moments_.push_back(nullptr);
    cuda.require(cuda.create_event(&moments_.back(), 0), "making an event");
  }
}

// Launches everything first, so that the device continues while the host runs callbacks.
void CudaContext::run_with_calls() {
  const Driver& cuda = driver();
  have_moments(marks_.size());
  begin_run();
  std::size_t next = 0;
  const auto put_next = [&] {
    BoundStep& step = steps_[next++];
    enqueue(step, transfers_.before(step.step, stream_));
  };
  for (std::size_t mark = 0; mark < marks_.size(); ++mark) {
    while (next < steps_.size() && steps_[next].step <= marks_[mark]) put_next();
    cuda.require(cuda.record(moments_[mark], stream_), "running");
  }
  while (next < steps_.size()) put_next();
  transfers_.end_run(stream_);
  for (std::size_t mark = 0; mark < marks_.size(); ++mark) {
    cuda.require(cuda.await_event(moments_[mark]), "running");
    call_(marks_[mark]);
  }
}

// Records an event after every step, without synchronizing in between: the idle gap until the next
// launch would count as the step's time. Time spent waiting for copies is excluded.
void CudaContext::run_step_by_step(std::span<double> seconds) {
  const Driver& cuda = driver();
  have_moments(2 * steps_.size() + 1);
  std::vector<std::size_t> begins, ends;  // moments
  const bool is_waiting = synchronizes_steps();
  begin_run();
  std::size_t last = 0;
  cuda.require(cuda.record(moments_[last], stream_), "timing");
  for (BoundStep& step : steps_) {
    const bool waits_for_copies = transfers_.before(step.step, stream_);
    if (waits_for_copies) cuda.require(cuda.record(moments_[++last], stream_), "timing");
    begins.push_back(last);
    enqueue(step, waits_for_copies);
    cuda.require(cuda.record(moments_[++last], stream_), "timing");
    ends.push_back(last);
    if (!is_waiting) continue;
    const int status = cuda.synchronise(stream_);
    if (status != 0) throw cuda.failure(status, "running").at(step_text(step.step));
  }
  transfers_.end_run(stream_);
  cuda.require(cuda.record(launched_, stream_), "running");
  await_steps();
  if (seconds.empty()) return;
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    float milliseconds = 0;
    cuda.require(cuda.elapsed(&milliseconds, moments_[begins[k]], moments_[ends[k]]), "timing");
    seconds[steps_[k].step] += static_cast<double>(milliseconds) / 1e3;
  }
}

void CudaContext::launch(std::span<double> seconds) {
  const Driver& cuda = driver();
  if (!seconds.empty() || (synchronizes_steps() && marks_.empty())) {
    run_step_by_step(seconds);
  } else if (!marks_.empty()) {
    run_with_calls();
  } else if (exec() == nullptr && has_work() && are_places_new_) {
    // Graphs are captured only for recurring addresses: capturing costs more than launching.
    enqueue_run();
  } else {
    start_steps();
  }
  cuda.require(cuda.record(launched_, stream_), "running");
}

void CudaContext::begin(std::span<const void* const> inputs, std::span<void* const> outputs,
                        std::span<double> seconds) {
  are_places_new_ = false;
  if (ports_.observe(inputs, outputs, stream_)) {
    are_places_new_ = !find_recording();
    use_addresses();
  }
  try {
    ports_.begin_inputs(inputs, stream_);
    launch(seconds);
    ports_.begin_outputs(outputs, error_.address(), stream_);
  } catch (...) {
    driver().synchronise(stream_);
    ports_.abandon();
    throw;
  }
}

// A failed graph does not identify the kernel that failed.
void CudaContext::await_steps() {
  const Driver& cuda = driver();
  const int status = cuda.await_event(launched_);
  if (status == 0) return;
  Error error = cuda.failure(status, "running");
  if (has_work()) {
    error.at(step_text(steps_.front().step), " to ", step_text(steps_.back().step), " of program '",
             program().name, "'");
    error.hint("TENON_GPU_STEPWISE=1 synchronizes after every step and names the one that fails");
  }
  throw error;
}

void CudaContext::finish() {
  std::int64_t report = 0;
  try {
    await_steps();
    report = ports_.finish(stream_);
  } catch (...) {
    driver().synchronise(stream_);
    ports_.abandon();
    throw;
  }
  require_checks_passed(report);
}

double CudaContext::replay() {
  const Driver& cuda = driver();
  if (exec() == nullptr && has_work()) capture();
  cuda.require(cuda.record(begin_, stream_), "timing");
  start_steps();
  cuda.require(cuda.record(end_, stream_), "timing");
  cuda.require(cuda.record(launched_, stream_), "running");
  await_steps();
  float milliseconds = 0;
  cuda.require(cuda.elapsed(&milliseconds, begin_, end_), "timing");
  return static_cast<double>(milliseconds) / 1e3;
}

// Times a graph with enough repetitions to outlast the launch overhead of the host.
double CudaContext::time_launches(const std::function<void()>& launches) {
  const Driver& cuda = driver();
  const auto seconds_of = [&](const std::function<void()>& work) {
    cuda.require(cuda.record(begin_, stream_), "timing");
    work();
    cuda.require(cuda.record(end_, stream_), "timing");
    cuda.require(cuda.synchronise(stream_), "timing");
    float milliseconds = 0;
    cuda.require(cuda.elapsed(&milliseconds, begin_, end_), "timing");
    return static_cast<double>(milliseconds) / 1e3;
  };
  launches();  // warm-up
  constexpr double kLong = 1e-3;
  const double once = std::max(seconds_of(launches), 1e-9);
  const int runs = static_cast<int>(std::clamp(kLong / once, 2.0, 32.0));
  const GraphExec exec = recorded([&] {
    for (int k = 0; k < runs; ++k) launches();
  });
  double seconds = 0;
  try {
    for (const bool is_timed : {false, true}) {
      const double taken =
          seconds_of([&] { cuda.require(cuda.launch_graph(exec, stream_), "timing"); });
      if (is_timed) seconds = taken;
    }
  } catch (...) {
    cuda.destroy_exec(exec);
    throw;
  }
  cuda.destroy_exec(exec);
  return seconds / runs;
}

double CudaContext::time_steps(std::size_t first, std::size_t count) {
  return time_launches([&] {
    for (BoundStep& step : steps_) {
      if (step.step >= first && step.step < first + count) enqueue(step);
    }
  });
}

std::vector<TimedCandidates> CudaContext::time_candidates(const std::vector<bool>& steps) {
  std::uint64_t most = scratch_.bytes();
  for (BoundStep& step : steps_) {
    if (!step.library || !steps[step.step]) continue;
    for (std::size_t variant = 0; variant < step.library->variant_count(); ++variant) {
      step.select_variant(variant);
      most = std::max(most, step.scratch_bytes);
    }
  }
  scratch_.allocate(most, "scratch of kernels");
  forget_graphs();
  constexpr int kRounds = 3;
  const auto timed = [&](BoundStep& step) {
    double least = std::numeric_limits<double>::infinity();
    try {
      for (int round = 0; round < kRounds; ++round)
        least = std::min(least, time_launches([&] { enqueue(step); }));
    } catch (const Error&) {  // the library offers the algorithm but cannot run it
      return std::numeric_limits<double>::infinity();
    }
    return least;
  };
  std::vector<TimedCandidates> made;
  for (BoundStep& step : steps_) {
    step.use_scratch(scratch_.address());
    if (!step.library || !steps[step.step]) continue;
    TimedCandidates& variants = made.emplace_back(TimedCandidates{step.step, {}, kRounds});
    for (std::size_t variant = 0; variant < step.library->variant_count(); ++variant) {
      step.select_variant(variant);
      variants.seconds.push_back(timed(step));
    }
    const auto best = std::ranges::min_element(variants.seconds);
    step.select_variant(static_cast<std::size_t>(best - variants.seconds.begin()));
  }
  return made;
}

}  // namespace

std::unique_ptr<DeviceContext> make_context(const CudaModel& model) {
  return std::make_unique<CudaContext>(model);
}

}  // namespace tenon::inline runtime::cuda
