// Programs on NVIDIA's devices.
#include "base/error.h"
#include "base/text.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/library_step.h"
#include "runtime/cuda/tensor_map.h"
#include "runtime/cuda/transfers.h"
#include "runtime/device.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>

namespace tenon::cuda {
namespace {

// "cudnn#3": the fourth of the ways that the library knows, found by timing.
std::size_t tuned_way(const std::string& candidate) {
  const std::size_t mark = candidate.find('#');
  return mark == std::string::npos ? 0 : std::strtoull(candidate.c_str() + mark + 1, nullptr, 10);
}

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

class CudaModel : public DeviceExecutable {
 public:
  explicit CudaModel(const Program& program) : program_(program) {
    const Driver& cuda = driver();
    require_architecture(cuda);
    if (!program.code.empty())
      cuda.require(cuda.load_module(&module_, program.code.data()), "loading a program's code");
    for (const Program::Kernel& kernel : program.kernels) {
      Function function = nullptr;
      if (kernel.library.empty())
        cuda.require(cuda.get_function(&function, module_, kernel.symbol.c_str()),
                     "finding a kernel");
      constexpr int kMostSharedBytes = 8;
      if (kernel.shared_bytes > 0) {
        const auto bytes = static_cast<int>(kernel.shared_bytes);
        cuda.require(cuda.set_function(function, kMostSharedBytes, bytes),
                     "giving a kernel its shared memory");
      }
      functions_.push_back(function);
    }
    if (program.constant_bytes == 0) return;
    constants_.allocate(program.constant_bytes, "constants");
    cuda.require(cuda.to_device(constants_.address(), program.constants.get(),
                                program.constant_bytes, nullptr),
                 "copying constants");
    cuda.require(cuda.synchronise(nullptr), "copying constants");
  }
  CudaModel(const CudaModel&) = delete;
  ~CudaModel() override {
    if (module_ != nullptr) driver().unload_module(module_);
  }

  std::unique_ptr<DeviceContext> make_context() const override;
  const Program& program() const { return program_; }
  Function function(std::size_t kernel) const { return functions_[kernel]; }
  Address constants() const { return constants_.address(); }

 private:
  // Machine code is for one generation of devices; with an `a` behind it for just that one.
  void require_architecture(const Driver& cuda) const {
    const std::string here = concat("sm_", cuda.major, cuda.minor);
    std::string wanted = program_.target.substr(std::string("cuda:").size());
    if (wanted.ends_with('a')) wanted.pop_back();
    if (wanted == here || (wanted.size() == here.size() &&
                           wanted.substr(0, wanted.size() - 1) == here.substr(0, here.size() - 1) &&
                           wanted < here && !program_.target.ends_with('a'))) {
      return;
    }
    throw Error("the program is for another GPU", ErrorKind::Device)
        .expected(program_.target)
        .got(cuda.device_name, ", ", here)
        .hint("compile it with --target=cuda:", here);
  }

  const Program& program_;
  Module module_ = nullptr;
  std::vector<Function> functions_;
  DeviceMemory constants_;
};

// One call with everything looked up. A kernel's parameters lie in `values`, one word each.
struct ReadyStep {
  std::size_t step = 0;
  Function function = nullptr;
  unsigned blocks = 0, threads = 0, shared_bytes = 0;
  std::vector<std::uint64_t> values;
  struct Map {
    const Program::TensorMap* map;
    std::int64_t rows;
    std::uint32_t element_bytes;
  };
  std::vector<Map> maps = {};
  /// Which of the values are addresses of inputs and outputs: (value, port).
  std::vector<std::pair<std::size_t, std::size_t>> ports = {};
  std::shared_ptr<LibraryStep> library;
};

constexpr Address kPortAlignment = 256;  // that kernels and libraries were chosen for

class CudaContext : public DeviceContext {
 public:
  explicit CudaContext(const CudaModel& model) : model_(model) {
    const Driver& cuda = driver();
    constexpr unsigned kNonBlocking = 1;
    cuda.require(cuda.create_stream(&stream_, kNonBlocking), "making a stream");
    cuda.require(cuda.create_event(&begin_, 0), "making an event");
    cuda.require(cuda.create_event(&end_, 0), "making an event");
    error_.allocate(256, "a kernel's report");
    // A binding without any launch has nothing that clears it.
    cuda.require(cuda.fill(error_.address(), 0, 8, stream_), "clearing a kernel's report");
  }
  CudaContext(const CudaContext&) = delete;
  ~CudaContext() override {
    const Driver& cuda = driver();
    cuda.synchronise(stream_);
    forget_graphs();
    cuda.destroy_event(begin_);
    cuda.destroy_event(end_);
    for (const Event moment : moments_) cuda.destroy_event(moment);
    cuda.destroy_stream(stream_);
  }

  void prepare(const BoundShapes& shapes, const Segment& segment) override;
  void keep(std::vector<Feedback> states) override {
    states_ = std::move(states);
    forget_graphs();
  }
  void call_behind(std::vector<std::size_t> steps,
                   std::function<void(std::size_t step)> call) override {
    marks_ = std::move(steps);
    call_ = std::move(call);
  }
  void fetch_input(std::size_t input, void* target) override { fetch(inputs_.at(input), target); }
  void fetch_output(std::size_t output, void* target) override {
    fetch(outputs_.at(output), target);
  }
  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           std::span<double> seconds) override;
  double replay() override;
  std::vector<TimedWays> time_ways(const std::vector<bool>& steps) override;
  std::uint64_t arena_bytes() const override { return arena_.bytes(); }
  std::uint64_t scratch_bytes() const override { return scratch_.bytes(); }
  std::uint64_t pinned_bytes() const override { return transfers_.pinned_bytes(); }

 private:
  void forget_graphs() {
    const Driver& cuda = driver();
    for (GraphExec& exec : execs_) {
      if (exec != nullptr) cuda.destroy_exec(exec);
      exec = nullptr;
    }
  }
  std::shared_ptr<LibraryStep> library_step(const std::string& description,
                                            const std::vector<std::int64_t>& extents);
  struct Port {
    Address own = 0;  ///< in `ports_`
    std::uint64_t bytes = 0;
    Address address = 0;  ///< where the launches have it: there, or in the caller's memory
  };
  Port& port_at(std::size_t k) {
    return k < inputs_.size() ? inputs_[k] : outputs_[k - inputs_.size()];
  }
  bool has_work() const { return !steps_.empty(); }
  GraphExec& exec() { return execs_[is_turned_ ? 1 : 0]; }
  void begin_run();
  void turn_states();
  void use_addresses();
  void enqueue(ReadyStep& step, bool is_behind_copies = false);
  void enqueue_run();
  void capture();
  void run_step_by_step(std::span<double> seconds);
  void run_with_calls();
  void have_moments(std::size_t count);
  void require_checks_held();

  const CudaModel& model_;
  Stream stream_ = nullptr;
  Event begin_ = nullptr, end_ = nullptr;
  std::vector<Event> moments_;  ///< before and behind steps
  /// The launches as graphs: of states that lie as at first, and the other way round.
  std::array<GraphExec, 2> execs_ = {};
  bool is_turned_ = false;
  DeviceMemory arena_, ports_, scratch_, error_;
  Transfers transfers_;
  std::vector<ReadyStep> steps_;
  void fetch(const Port& port, void* target);
  bool use_callers_memory(std::span<const void* const> inputs, std::span<void* const> outputs);
  std::vector<Port> inputs_, outputs_;
  std::vector<Feedback> states_;
  std::vector<std::size_t> marks_;  ///< steps of the program behind which `call_` is called
  std::function<void(std::size_t)> call_;
  bool are_places_new_ = false;  ///< other memory of the caller's than in the run before
};

void CudaContext::prepare(const BoundShapes& shapes, const Segment& segment) {
  const Driver& cuda = driver();
  const Program& p = model_.program();
  cuda.require(cuda.synchronise(stream_), "waiting for the device");
  forget_graphs();
  steps_.clear();
  arena_.allocate(shapes.planned_bytes, "the values between steps");
  // Inputs and outputs side by side.
  std::uint64_t total = 0;
  const auto place = [&](const std::vector<std::uint32_t>& buffers) {
    std::vector<Port> ports;
    for (const std::uint32_t id : buffers) {
      ports.push_back({total, shapes.bytes_of(id)});
      total += aligned(ports.back().bytes);
    }
    return ports;
  };
  inputs_ = place(segment.reads);
  outputs_ = place(segment.writes);
  ports_.allocate(std::max<std::uint64_t>(total, 256), "inputs and outputs");
  for (auto* ports : {&inputs_, &outputs_}) {
    for (Port& port : *ports) port.address = port.own += ports_.address();
  }
  std::map<std::uint32_t, std::size_t> port_of;  // by buffer: inputs, behind them outputs
  for (std::size_t k = 0; k < segment.reads.size(); ++k) port_of[segment.reads[k]] = k;
  for (std::size_t k = 0; k < segment.writes.size(); ++k)
    port_of[segment.writes[k]] = inputs_.size() + k;
  const auto address_of = [&](std::uint32_t id) -> Address {
    const bool is_constant = p.buffers[id].place == Program::Place::Constant;
    return is_constant ? model_.constants() + p.buffers[id].offset
                       : arena_.address() + shapes.offsets[id];
  };
  std::uint64_t scratch = 0;
  for (std::size_t k = segment.begin; k < segment.end; ++k) {
    const Program::Step& step = p.steps[k];
    if (!shapes.runs(step)) continue;
    const Program::Kernel& kernel = p.kernels[step.kernel];
    ReadyStep ready;
    ready.step = k;
    for (const std::uint32_t id : step.buffers) {
      const auto port = port_of.find(id);
      if (port != port_of.end()) ready.ports.emplace_back(ready.values.size(), port->second);
      ready.values.push_back(port == port_of.end() ? address_of(id) : port_at(port->second).own);
    }
    std::vector<std::int64_t> extents;
    for (const Extent& extent : step.extents) extents.push_back(extent.value(shapes.symbols));
    // The result, which comes last, may have no elements.
    if (!kernel.library.empty() && shapes.bytes_of(step.buffers.back()) == 0) continue;
    if (!kernel.library.empty()) {
      try {
        ready.library = library_step(kernel.library, extents);
      } catch (Error& error) {
        throw error.at("node '", step.value, "'");
      }
      ready.library->select_way(tuned_way(step.candidate));
      scratch = std::max(scratch, ready.library->workspace_bytes());
    } else {
      const std::int64_t blocks = step.work.value(shapes.symbols);
      if (blocks <= 0) continue;
      if (blocks > std::int64_t{0x7fffffff}) {
        throw Error("a value is too large for one launch", ErrorKind::Unsupported)
            .at("node '", step.value, "'")
            .got(blocks, " blocks");
      }
      ready.function = model_.function(step.kernel);
      ready.blocks = static_cast<unsigned>(blocks);
      ready.threads = kernel.threads;
      ready.shared_bytes = kernel.shared_bytes;
      for (const Program::TensorMap& map : kernel.maps) {
        const std::int64_t rows = map.rows.value(shapes.symbols);
        const std::uint32_t buffer = step.buffers[map.buffer];
        const std::uint32_t element_bytes = p.buffers[buffer].element_bytes;
        std::uint64_t bytes = 0;
        if (rows < 1 || (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) ||
            __builtin_mul_overflow(static_cast<std::uint64_t>(rows), map.pitches.back(), &bytes) ||
            __builtin_mul_overflow(bytes, std::uint64_t{element_bytes}, &bytes) ||
            bytes > shapes.bytes_of(buffer)) {
          throw Error("the program does not hold together")
              .at("node '", step.value, "'")
              .got("a tensor map larger than its buffer")
              .hint("compile the model again");
        }
        ready.maps.push_back({&map, rows, element_bytes});
      }
      if (kernel.cluster == 0)
        ready.blocks = std::min(ready.blocks, static_cast<unsigned>(cuda.multiprocessors));
      for (const std::int64_t extent : extents)
        ready.values.push_back(static_cast<std::uint64_t>(extent));
      ready.values.push_back(0);  // scratch
      ready.values.push_back(error_.address());
      const auto own = static_cast<std::uint64_t>(kernel.scratch_bytes.value(shapes.symbols));
      scratch = std::max(scratch, own * ready.blocks);
    }
    steps_.push_back(std::move(ready));
  }
  scratch_.allocate(std::max<std::uint64_t>(scratch, 256), "scratch of kernels");
  for (ReadyStep& step : steps_) {
    if (!step.library) step.values[step.values.size() - 2] = scratch_.address();
  }
  transfers_.prepare(p, shapes, arena_.address());
}

std::shared_ptr<LibraryStep> CudaContext::library_step(const std::string& description,
                                                       const std::vector<std::int64_t>& extents) {
  const LibraryCall call = parse_library_call(description);
  if (extents.size() != extent_count(call.kind)) {
    throw Error("a library's function takes another number of extents")
        .expected(extent_count(call.kind))
        .got(extents.size());
  }
  return make_library_step(call, extents);
}

void CudaContext::enqueue(ReadyStep& step, bool is_behind_copies) {
  if (step.library) {
    step.library->enqueue(stream_, step.values, scratch_.address());
    return;
  }
  std::vector<void*> parameters;
  for (std::uint64_t& value : step.values) parameters.push_back(&value);
  const Driver& cuda = driver();
  std::vector<EncodedMap> maps;  // addresses may be others than in the run before
  for (const auto& [map, rows, element_bytes] : step.maps)
    maps.push_back(encode_map(*map, rows, element_bytes, step.values[map->buffer]));
  for (EncodedMap& map : maps) parameters.push_back(&map);
  // Its blocks may come while a kernel of ours before it still ends: each waits for that first
  // (`codegen/cuda/prelude.cpp`). Behind a library's kernel it cost more than it gained; behind a
  // copy there is more to wait for than a kernel.
  LaunchAttribute starts_early{LaunchAttribute::kProgrammaticSerialisation, {}, 1, {}};
  LaunchConfig config{step.blocks, 1,       1, step.threads, 1, 1, step.shared_bytes,
                      stream_,     nullptr, 0};
  const bool follows_own = &step != steps_.data() && !(&step - 1)->library;
  if (cuda.major >= 9 && follows_own && !is_behind_copies) {
    config.attributes = &starts_early;
    config.attribute_count = 1;
  }
  const int status = cuda.launch(&config, step.function, parameters.data(), nullptr);
  if (status == 0) return;
  cuda.require(status, concat("launching '", model_.program().steps[step.step].name, "'").c_str());
}

void CudaContext::fetch(const Port& port, void* target) {
  const Driver& cuda = driver();
  if (port.bytes > 0)
    cuda.require(cuda.to_host(target, port.address, port.bytes, stream_), "copying an output");
  cuda.require(cuda.synchronise(stream_), "copying an output");
}

void CudaContext::begin_run() {
  const Driver& cuda = driver();
  cuda.require(cuda.fill(error_.address(), 0, 8, stream_), "running");
  transfers_.begin_run();
}

void CudaContext::enqueue_run() {
  begin_run();
  for (ReadyStep& step : steps_) enqueue(step, transfers_.before(step.step, stream_));
  transfers_.end_run(stream_);
}

// States come in where the run before left them, and go out where it had them from: nothing is
// copied, and what they were before is still there.
void CudaContext::turn_states() {
  if (states_.empty()) return;
  is_turned_ = !is_turned_;
  for (const auto& [input, output] : states_)
    std::swap(inputs_[input].address, outputs_[output].address);
  use_addresses();
}

void CudaContext::use_addresses() {
  for (ReadyStep& step : steps_) {
    for (const auto& [value, port] : step.ports) step.values[value] = port_at(port).address;
  }
}

// The launches of a run as one graph, which the device goes through by itself.
void CudaContext::capture() {
  const Driver& cuda = driver();
  constexpr int kThreadLocal = 1;
  Graph graph = nullptr;
  cuda.require(cuda.begin_capture(stream_, kThreadLocal), "recording launches");
  try {
    enqueue_run();
  } catch (...) {
    cuda.end_capture(stream_, &graph);
    if (graph != nullptr) cuda.destroy_graph(graph);
    throw;
  }
  cuda.require(cuda.end_capture(stream_, &graph), "recording launches");
  const int status = cuda.instantiate(&exec(), graph, 0);
  cuda.destroy_graph(graph);
  cuda.require(status, "recording launches");
}

void CudaContext::require_checks_held() {
  std::int64_t error = 0;
  const Driver& cuda = driver();
  cuda.require(cuda.to_host(&error, error_.address(), sizeof error, stream_), "reading back");
  cuda.require(cuda.synchronise(stream_), "running");
  if (error == 0) return;
  const auto number = static_cast<std::size_t>(error);
  for (const ReadyStep& step : steps_) {
    const auto& checks = model_.program().kernels[model_.program().steps[step.step].kernel].checks;
    if (step.library || number > checks.size()) continue;
    throw Error(checks[number - 1]).at("program '", model_.program().name, "' on the GPU");
  }
  throw Error("the data breaks an operator's rules")
      .at("program '", model_.program().name, "' on the GPU");
}

void CudaContext::have_moments(std::size_t count) {
  const Driver& cuda = driver();
  while (moments_.size() < count) {
    moments_.push_back(nullptr);
    cuda.require(cuda.create_event(&moments_.back(), 0), "making an event");
  }
}

// All is launched first, so that the device goes on while calls are made.
void CudaContext::run_with_calls() {
  const Driver& cuda = driver();
  have_moments(marks_.size());
  begin_run();
  std::size_t next = 0;
  const auto put_next = [&] {
    ReadyStep& step = steps_[next++];
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

// With an event behind every step. Nothing is waited for in between: the device would idle until
// the next launch reached it, and that would be told as the step's time. What a step waits for
// copies is none of its time.
void CudaContext::run_step_by_step(std::span<double> seconds) {
  const Driver& cuda = driver();
  have_moments(2 * steps_.size() + 1);
  std::vector<std::size_t> begins, ends;  // moments
  begin_run();
  std::size_t last = 0;
  cuda.require(cuda.record(moments_[last], stream_), "timing");
  for (ReadyStep& step : steps_) {
    const bool is_behind_copies = transfers_.before(step.step, stream_);
    if (is_behind_copies) cuda.require(cuda.record(moments_[++last], stream_), "timing");
    begins.push_back(last);
    enqueue(step, is_behind_copies);
    cuda.require(cuda.record(moments_[++last], stream_), "timing");
    ends.push_back(last);
  }
  transfers_.end_run(stream_);
  cuda.require(cuda.synchronise(stream_), "running");
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    float milliseconds = 0;
    cuda.require(cuda.elapsed(&milliseconds, moments_[begins[k]], moments_[ends[k]]), "timing");
    seconds[steps_[k].step] += static_cast<double>(milliseconds) / 1e3;
  }
}

// Memory of the device's that the caller gave is where launches read and write, if it lies as
// theirs does; states stay in their own. Whether any of it is the device's, copied from or not.
bool CudaContext::use_callers_memory(std::span<const void* const> inputs,
                                     std::span<void* const> outputs) {
  const Driver& cuda = driver();
  std::vector<bool> is_state(inputs_.size() + outputs_.size());
  for (const auto& [input, output] : states_)
    is_state[input] = is_state[inputs_.size() + output] = true;
  bool is_any = false, is_changed = false;
  for (std::size_t k = 0; k < is_state.size(); ++k) {
    const void* given = k < inputs_.size() ? inputs[k] : outputs[k - inputs_.size()];
    Port& port = port_at(k);
    const bool is_on_device = given != nullptr && port.bytes > 0 && cuda.is_on_device(given);
    is_any = is_any || is_on_device;
    const auto address = reinterpret_cast<Address>(given);
    if (is_state[k]) continue;
    const bool is_usable = is_on_device && address % kPortAlignment == 0;
    const Address wanted = is_usable ? address : port.own;
    is_changed = is_changed || wanted != port.address;
    port.address = wanted;
  }
  are_places_new_ = is_changed;
  if (is_changed) {
    forget_graphs();
    use_addresses();
  }
  return is_any;
}

void CudaContext::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                      std::span<double> seconds) {
  const Driver& cuda = driver();
  const bool is_any_on_device = use_callers_memory(inputs, outputs);
  if (is_any_on_device) cuda.require(cuda.synchronise(nullptr), "waiting for the caller's work");
  turn_states();
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].bytes == 0 || inputs[k] == nullptr) continue;
    const auto source = reinterpret_cast<Address>(inputs[k]);
    const Address place = inputs_[k].address;
    if (source == place) continue;  // it is there
    const bool is_there = is_any_on_device && cuda.is_on_device(inputs[k]);
    cuda.require(is_there ? cuda.copy(place, source, inputs_[k].bytes, stream_)
                          : cuda.to_device(place, inputs[k], inputs_[k].bytes, stream_),
                 "copying an input");
  }
  if (!seconds.empty()) {
    run_step_by_step(seconds);
  } else if (!marks_.empty()) {
    run_with_calls();
  } else {
    // Launches are recorded for memory that comes again: recording takes longer than launching.
    if (exec() == nullptr && has_work() && are_places_new_) {
      enqueue_run();
    } else {
      if (exec() == nullptr && has_work()) capture();
      if (exec() != nullptr) cuda.require(cuda.launch_graph(exec(), stream_), "running");
    }
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (outputs_[k].bytes == 0 || outputs[k] == nullptr) continue;
    const auto target = reinterpret_cast<Address>(outputs[k]);
    if (target == outputs_[k].address) continue;  // it is there
    const bool is_there = is_any_on_device && cuda.is_on_device(outputs[k]);
    cuda.require(is_there
                     ? cuda.copy(target, outputs_[k].address, outputs_[k].bytes, stream_)
                     : cuda.to_host(outputs[k], outputs_[k].address, outputs_[k].bytes, stream_),
                 "copying an output");
  }
  require_checks_held();
}

double CudaContext::replay() {
  const Driver& cuda = driver();
  turn_states();
  if (exec() == nullptr && has_work()) capture();
  cuda.require(cuda.record(begin_, stream_), "timing");
  if (exec() != nullptr) cuda.require(cuda.launch_graph(exec(), stream_), "running");
  cuda.require(cuda.record(end_, stream_), "timing");
  cuda.require(cuda.synchronise(stream_), "running");
  float milliseconds = 0;
  cuda.require(cuda.elapsed(&milliseconds, begin_, end_), "timing");
  return static_cast<double>(milliseconds) / 1e3;
}

std::vector<TimedWays> CudaContext::time_ways(const std::vector<bool>& steps) {
  const Driver& cuda = driver();
  std::uint64_t most = scratch_.bytes();
  for (ReadyStep& step : steps_) {
    if (!step.library || !steps[step.step]) continue;
    for (std::size_t way = 0; way < step.library->way_count(); ++way) {
      step.library->select_way(way);
      most = std::max(most, step.library->workspace_bytes());
    }
  }
  scratch_.allocate(most, "scratch of kernels");
  forget_graphs();
  constexpr int kWarmUp = 2, kRounds = 3, kRuns = 8;
  const auto timed = [&](ReadyStep& step) {
    float least = std::numeric_limits<float>::infinity();
    try {
      for (int k = 0; k < kWarmUp; ++k) enqueue(step);
      for (int round = 0; round < kRounds; ++round) {
        cuda.require(cuda.record(begin_, stream_), "timing");
        for (int k = 0; k < kRuns; ++k) enqueue(step);
        cuda.require(cuda.record(end_, stream_), "timing");
        cuda.require(cuda.synchronise(stream_), "timing");
        float milliseconds = 0;
        cuda.require(cuda.elapsed(&milliseconds, begin_, end_), "timing");
        least = std::min(least, milliseconds);
      }
    } catch (const Error&) {
      return std::numeric_limits<double>::infinity();  // the library offers it and does not run it
    }
    return static_cast<double>(least) / 1e3 / kRuns;
  };
  std::vector<TimedWays> made;
  for (ReadyStep& step : steps_) {
    if (!step.library) step.values[step.values.size() - 2] = scratch_.address();
    if (!step.library || !steps[step.step]) continue;
    TimedWays& ways = made.emplace_back(TimedWays{step.step, {}, kRounds});
    for (std::size_t way = 0; way < step.library->way_count(); ++way) {
      step.library->select_way(way);
      ways.seconds.push_back(timed(step));
    }
    const auto best = std::ranges::min_element(ways.seconds);
    step.library->select_way(static_cast<std::size_t>(best - ways.seconds.begin()));
  }
  return made;
}

std::unique_ptr<DeviceContext> CudaModel::make_context() const {
  return std::make_unique<CudaContext>(*this);
}

}  // namespace
}  // namespace tenon::cuda

namespace tenon {

bool is_for_device(const Program& program) { return program.target.starts_with("cuda:"); }

std::shared_ptr<const DeviceExecutable> load_on_device(const Program& program) {
  return std::make_shared<cuda::CudaModel>(program);
}

}  // namespace tenon
