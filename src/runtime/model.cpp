#include "runtime/model.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "program/checksum.h"
#include "program/target.h"
#include "runtime/bound_shapes.h"
#include "runtime/guarded_call.h"
#include "runtime/memory.h"
#include "runtime/processors.h"
#include "runtime/thread_pool.h"

namespace tenon {
namespace {

// Where a pointer of the caller goes.
struct Patch {
  std::size_t pointer = 0, port = 0;
  bool is_input = false;
};

// Enough chunks for threads of uneven speed, few enough that taking one costs nothing.
constexpr std::int64_t kChunksPerThread = 4;
// What touches so little is done by one thread sooner than a second is called; what touches a little
// more is not worth asking whether another is done.
constexpr std::uint64_t kBytesForOne = 16 << 10, kBytesInOnePiece = 256 << 10;

// A constant of so many bytes is compared while it is read, so many at once.
constexpr std::uint64_t kBytesStreamed = 1 << 20, kBytesAtOnce = 512 << 10;

// The code of a program that this processor can run.
const std::vector<std::byte>& runnable_code(const Program& program) {
  require_target(program);
  return program.code;
}

Error altered_constants(const Program& program, std::optional<std::size_t> step = std::nullopt) {
  return Error("the program file is damaged")
      .at("program '", program.name, "'", step ? concat(", step '", program.steps[*step].name, "'") : "")
      .got("altered constants")
      .hint("compile the model again");
}

}  // namespace

Model::Model(Program program) : Model(std::move(program), load_on_device) {}

Model::Model(Program program, MakeDevice make_device)
    : program_(std::move(program)), is_intact_(program_.constant_checksums.size()) {
  if (is_for_device(program_)) {
    // What is copied to a device is compared as a whole: it is read either way.
    std::atomic<bool> is_altered = false;
    compare(0, program_.constant_bytes, is_altered);
    if (is_altered) throw altered_constants(program_);
    device_ = make_device(program_);
    return;
  }
  code_.emplace(runnable_code(program_));
  for (const Program::Kernel& kernel : program_.kernels) {
    kernels_.push_back(reinterpret_cast<KernelFunction>(code_->function(kernel.symbol)));
  }
}

bool Model::is_compared(std::uint64_t begin, std::uint64_t end) const {
  if (is_intact_.empty() || begin >= end) return true;
  for (std::size_t block = begin / kChecksumBlock; block <= (end - 1) / kChecksumBlock; ++block) {
    if (!is_intact_[block].load(std::memory_order_relaxed)) return false;
  }
  return true;
}

bool Model::compare(std::uint64_t begin, std::uint64_t end, std::atomic<bool>& is_altered) const {
  if (is_intact_.empty() || begin >= end) return false;
  bool has_compared = false;
  for (std::size_t block = begin / kChecksumBlock; block <= (end - 1) / kChecksumBlock; ++block) {
    // Two threads at once may both compare a block, and come to the same.
    if (is_intact_[block].load(std::memory_order_relaxed)) continue;
    has_compared = true;
    const auto bytes = checksum_block({program_.constants.get(), program_.constant_bytes}, block);
    const bool is_intact = checksum(bytes) == program_.constant_checksums[block];
    (is_intact ? is_intact_[block] : is_altered).store(true, std::memory_order_relaxed);
  }
  return has_compared;
}

struct Context::State : BoundShapes {
  // A step with everything looked up.
  struct ReadyStep {
    KernelFunction kernel = nullptr;
    std::size_t first_pointer = 0, first_extent = 0;
    std::int64_t work = 0, chunk = 1;
    std::size_t step = 0;
    State* owner = nullptr;
  };

  explicit State(std::shared_ptr<const Model> shared) : BoundShapes(shared->program()), model(std::move(shared)) {}

  std::shared_ptr<const Model> model;
  std::unique_ptr<DeviceContext> device;  // in place of most of what follows
  int thread_count = 1;
  bool is_bound = false;
  Memory arena, scratch;
  std::uint64_t scratch_stride = 0;
  std::vector<void*> pointers;
  std::vector<std::int64_t> extents;
  std::vector<ReadyStep> steps;
  std::vector<Patch> patches;
  std::unordered_map<std::uint32_t, const std::byte*> replaced;  // constants, by buffer
  std::int64_t error = 0;
  std::optional<GuardedEnd> guard = guarded_end();
  bool has_run = false;  // since shapes were bound: what the steps read is known to be intact
  std::atomic<bool> is_altered = false;
  std::atomic_flag is_in_use;
  Watch* watch = nullptr;  // of the run that is seen
  std::span<const void* const> run_inputs;  // of the last run
  std::span<void* const> run_outputs;

  const Program& program() const { return model->program(); }
  const std::byte* constant(std::uint32_t id) const {
    const auto found = replaced.find(id);
    return found != replaced.end() ? found->second : program().constants.get() + program().buffers[id].offset;
  }

  void place_buffers();
  void prepare_steps();
  std::unique_ptr<GuardedCall> guarded(const ReadyStep& ready);
  std::byte* scratch_of(std::size_t thread) const { return scratch.data() + thread * scratch_stride; }
  std::byte* scratch_for(const ReadyStep& ready, std::size_t thread) const;
  std::int64_t chunk_of(const Program::Step& step, std::int64_t work) const;
  // A constant that a call reads.
  struct Read {
    const Program::Buffer* buffer = nullptr;
    std::uint64_t bytes = 0;
    bool is_streamed() const;
  };
  template <class F>
  void for_each_constant(const ReadyStep& ready, F visit) const;
  bool is_compared(const ReadyStep& ready) const;
  void compare_before(const ReadyStep& ready, ThreadPool::Caller& caller);
  void run_on_device(std::span<const void* const> inputs, std::span<void* const> outputs, std::span<double> seconds);
  template <class Seen>
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, Seen& seen);
  std::int64_t items_at_once(const ReadyStep& ready) const;
  void compare_share(const ReadyStep& ready, std::int64_t begin, std::int64_t end);
  void run_items(const ReadyStep& ready, std::size_t thread, std::int64_t begin, std::int64_t end);
  void compare_and_run(ReadyStep& ready, ThreadPool::Caller& caller);
  void require_checks_held(const ReadyStep& ready) const;
};

void Context::State::place_buffers() {
  const Program& p = program();
  if (planned_bytes > arena.bytes() && !arena.allocate(planned_bytes)) throw no_arena(p, all_bytes(), planned_bytes);

  pointers.clear();
  patches.clear();
  for (const Program::Step& step : p.steps) {
    for (const std::uint32_t id : step.buffers) {
      const Program::Buffer& buffer = p.buffers[id];
      void* pointer = nullptr;
      switch (buffer.place) {
        case Program::Place::Constant:
          pointer = const_cast<std::byte*>(constant(id));  // NOLINT: only read
          break;
        case Program::Place::Arena: pointer = arena.data() + offsets[id]; break;
        case Program::Place::Input: patches.push_back({pointers.size(), buffer.offset, true}); break;
        case Program::Place::Output: patches.push_back({pointers.size(), buffer.offset, false}); break;
      }
      pointers.push_back(pointer);
    }
  }
}

std::unique_ptr<GuardedCall> Context::State::guarded(const ReadyStep& ready) {
  const std::vector<std::uint32_t>& buffers = program().steps[ready.step].buffers;
  const std::span<void*> all(pointers.data() + ready.first_pointer, buffers.size());
  std::vector<GuardedCall::Argument> arguments;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    const Program::Place place = program().buffers[buffers[k]].place;
    const bool is_read_only = place == Program::Place::Constant || place == Program::Place::Input;
    arguments.push_back({all[k], bytes_of(buffers[k]), is_read_only});
  }
  return std::make_unique<GuardedCall>(all, arguments, *guard);
}

std::int64_t Context::State::chunk_of(const Program::Step& step, std::int64_t work) const {
  std::uint64_t bytes = 0;
  for (const std::uint32_t buffer : step.buffers) bytes += bytes_of(buffer);
  if (bytes <= kBytesForOne) return work;
  const std::int64_t pieces = bytes <= kBytesInOnePiece ? 1 : kChunksPerThread;
  return std::max<std::int64_t>(1, (work + thread_count - 1) / thread_count / pieces);
}

void Context::State::prepare_steps() {
  const Program& p = program();
  steps.clear();
  extents.clear();
  scratch_stride = 0;
  std::size_t pointer = 0, hungriest = 0;
  for (std::size_t k = 0; k < p.steps.size(); ++k) {
    const Program::Step& step = p.steps[k];
    const ReadyStep ready{model->kernel(step.kernel), pointer, extents.size(), step.work.value(symbols), 1, k, this};
    for (const Extent& extent : step.extents) extents.push_back(extent.value(symbols));
    pointer += step.buffers.size();
    if (!runs(step)) continue;
    const auto wanted = static_cast<std::uint64_t>(p.kernels[step.kernel].scratch_bytes.value(symbols));
    if (wanted > kMaxBytes) throw no_scratch(p, k, wanted, thread_count);
    if ((wanted + 4095) / 4096 * 4096 > scratch_stride) {
      scratch_stride = (wanted + 4095) / 4096 * 4096;
      hungriest = k;
    }
    if (ready.work <= 0) continue;
    steps.push_back(ready);
    steps.back().chunk = chunk_of(step, ready.work);
  }
  if (guard) scratch_stride += kGuardBytes;
  const std::uint64_t bytes = scratch_stride * static_cast<std::uint64_t>(thread_count);
  const bool is_enough = bytes <= scratch.bytes() && !guard;
  if (!is_enough && !scratch.allocate(bytes)) throw no_scratch(p, hungriest, scratch_stride, thread_count);
  for (std::size_t end = scratch_stride; guard && end <= bytes; end += scratch_stride) {
    forbid(scratch.data() + end - kGuardBytes, kGuardBytes);
  }
}

std::byte* Context::State::scratch_for(const ReadyStep& ready, std::size_t thread) const {
  if (!guard) return scratch_of(thread);
  const Program::Kernel& kernel = program().kernels[program().steps[ready.step].kernel];
  return scratch_of(thread + 1) - kGuardBytes - kernel.scratch_bytes.value(symbols);
}

// Large constants are compared piece by piece by whoever is about to read them, which so finds them in its
// cache. Which items read which piece is a guess: constants are packed in the order in which they are read. Where
// it is wrong a kernel reads what is compared a little later, before anybody gets results; that must do no harm,
// so that only numbers are compared so, and no indices.
bool Context::State::Read::is_streamed() const {
  const bool is_real = buffer->dtype == "f32" || buffer->dtype == "f64" || buffer->dtype == "f16" || buffer->dtype == "bf16";
  return bytes >= kBytesStreamed && is_real && !buffer->is_looked_up;
}

template <class F>
void Context::State::for_each_constant(const ReadyStep& ready, F visit) const {
  for (const std::uint32_t id : program().steps[ready.step].buffers) {
    const Program::Buffer& buffer = program().buffers[id];
    if (buffer.place == Program::Place::Constant) visit(Read{&buffer, bytes_of(id)});
  }
}

bool Context::State::is_compared(const ReadyStep& ready) const {
  bool are_all = true;
  for_each_constant(ready, [&](const Read& read) {
    are_all = are_all && model->is_compared(read.buffer->offset, read.buffer->offset + read.bytes);
  });
  return are_all;
}

void Context::State::compare_before(const ReadyStep& ready, ThreadPool::Caller& caller) {
  struct Blocks {
    State* state;
    std::uint64_t begin, end;
    std::atomic<bool> has_compared;
  };
  const auto compare = [](void* opaque, std::size_t, std::int64_t from, std::int64_t to) {
    auto& [state, begin, end, has_compared] = *static_cast<Blocks*>(opaque);
    const std::uint64_t first = begin / kChecksumBlock * kChecksumBlock;
    const auto block_end = [&](std::int64_t block) { return first + static_cast<std::uint64_t>(block) * kChecksumBlock; };
    if (state->model->compare(std::max(begin, block_end(from)), std::min(end, block_end(to)), state->is_altered)) {
      has_compared.store(true, std::memory_order_relaxed);
    }
  };
  for_each_constant(ready, [&](const Read& read) {
    if (read.is_streamed() || read.bytes == 0) return;
    Blocks blocks{this, read.buffer->offset, read.buffer->offset + read.bytes, false};
    const std::uint64_t count = (blocks.end - 1) / kChecksumBlock - blocks.begin / kChecksumBlock + 1;
    caller.for_each(static_cast<std::int64_t>(count), 1, thread_count, compare, &blocks);
    // All of a table was read to compare it, and a few rows are wanted.
    if (!blocks.has_compared || !read.buffer->is_looked_up || !program().is_mapped) return;
    let_go(program().constants.get() + read.buffer->offset, read.bytes);
  });
}

std::int64_t Context::State::items_at_once(const ReadyStep& ready) const {
  std::uint64_t bytes = 0;
  for_each_constant(ready, [&](const Read& read) { bytes += read.is_streamed() ? read.bytes : 0; });
  return std::max<std::int64_t>(1, ready.work / static_cast<std::int64_t>(bytes / kBytesAtOnce + 1));
}

void Context::State::compare_share(const ReadyStep& ready, std::int64_t begin, std::int64_t end) {
  for_each_constant(ready, [&](const Read& read) {
    if (!read.is_streamed()) return;
    const auto place = [&](std::int64_t item) {
      return read.buffer->offset + static_cast<std::uint64_t>(static_cast<double>(read.bytes) * static_cast<double>(item) /
                                                              static_cast<double>(ready.work));
    };
    model->compare(place(begin), end == ready.work ? read.buffer->offset + read.bytes : place(end), is_altered);
  });
}

void Context::State::run_items(const ReadyStep& ready, std::size_t thread, std::int64_t begin, std::int64_t end) {
  const KernelArguments arguments{pointers.data() + ready.first_pointer, extents.data() + ready.first_extent,
                                  scratch_for(ready, thread), &error};
  ready.kernel(&arguments, begin, end);
}

void Context::State::compare_and_run(ReadyStep& ready, ThreadPool::Caller& caller) {
  is_altered = false;
  compare_before(ready, caller);
  if (is_altered) throw altered_constants(program(), ready.step);
  const auto run_chunk = [](void* opaque, std::size_t thread, std::int64_t begin, std::int64_t end) {
    const auto& step = *static_cast<const ReadyStep*>(opaque);
    const std::int64_t items = step.owner->items_at_once(step);
    for (std::int64_t at = begin, next = 0; at < end; at = next) {
      next = std::min(at + items, end);
      step.owner->compare_share(step, at, next);
      step.owner->run_items(step, thread, at, next);
    }
  };
  caller.for_each(ready.work, ready.chunk, thread_count, run_chunk, &ready);
  if (is_altered) throw altered_constants(program(), ready.step);
}

void Context::State::require_checks_held(const ReadyStep& ready) const {
  if (error == 0) return;
  const Program::Step& step = program().steps[ready.step];
  const auto& checks = program().kernels[step.kernel].checks;
  const auto number = static_cast<std::size_t>(error);
  throw Error(number >= 1 && number <= checks.size() ? checks[number - 1] : "the data breaks an operator's rules")
      .at("node '", step.name, "'");
}

ContextUse::ContextUse(std::atomic_flag& is_in_use) : is_in_use_(is_in_use) {
  if (is_in_use_.test_and_set(std::memory_order_acquire)) {
    throw Error("two threads use one context at the same time", ErrorKind::Usage)
        .hint("give each thread a context of its own: they share the model");
  }
}

Context::Context(std::shared_ptr<const Model> model, int thread_count)
    : state_(std::make_unique<State>(std::move(model))) {
  state_->thread_count = thread_count > 0 ? thread_count : usable_threads();
  if (state_->model->device() != nullptr) state_->device = state_->model->device()->make_context();
  ThreadPool::shared().reserve(state_->thread_count - 1);
  if (state_->program().symbols.empty()) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const std::uint32_t input : state_->program().inputs) {
      auto& shape = shapes.emplace_back();
      for (const Extent& dim : state_->program().buffers[input].dims) shape.push_back(dim.value({}));
    }
    bind(shapes);
  }
}
Context::Context(Context&&) noexcept = default;
Context::~Context() = default;

void Context::bind(std::span<const std::vector<std::int64_t>> input_shapes) {
  State& s = *state_;
  const ContextUse use(s.is_in_use);
  s.is_bound = s.has_run = false;
  s.bind(input_shapes);
  if (s.device) {
    s.device->prepare(s);
  } else {
    s.place_buffers();
    s.prepare_steps();
  }
  s.is_bound = true;
}

void Context::replace_constant(std::uint32_t buffer, const std::byte* data) {
  State& s = *state_;
  const ContextUse use(s.is_in_use);
  TENON_ASSERT(s.program().buffers.at(buffer).is_weight, "only weights are replaced");
  if (s.device) throw Error("weights of a program on a device are not swapped", ErrorKind::Unsupported);
  s.replaced[buffer] = data;
  if (s.is_bound) s.place_buffers();
}

const Program& Context::program() const { return state_->program(); }

const std::vector<std::int64_t>& Context::output_shape(std::size_t output) const {
  return state_->output_shapes.at(output);
}

int Context::thread_count() const { return state_->thread_count; }

std::uint64_t Context::arena_bytes() const {
  return state_->device ? state_->device->arena_bytes() : state_->arena.bytes();
}
std::uint64_t Context::scratch_bytes() const {
  return state_->device ? state_->device->scratch_bytes() : state_->scratch.bytes();
}

bool Context::is_on_device() const { return state_->device != nullptr; }

void Context::keep_on_device(std::vector<Feedback> states) {
  const ContextUse use(state_->is_in_use);
  TENON_ASSERT(state_->device != nullptr, "states are kept on a device");
  state_->device->keep(std::move(states));
}

void Context::fetch_input(std::size_t input, void* target) {
  const ContextUse use(state_->is_in_use);
  state_->device->fetch_input(input, target);
}

void Context::fetch_output(std::size_t output, void* target) {
  const ContextUse use(state_->is_in_use);
  state_->device->fetch_output(output, target);
}

std::vector<std::string> Context::tuned_candidates() {
  const ContextUse use(state_->is_in_use);
  TENON_ASSERT(state_->device != nullptr && state_->is_bound, "shapes are bound on a device");
  return state_->device->tuned_candidates();
}

double Context::replay() {
  const ContextUse use(state_->is_in_use);
  TENON_ASSERT(state_->device != nullptr && state_->is_bound, "shapes are bound on a device");
  return state_->device->replay();
}

Context::BoundBuffer Context::buffer(std::size_t index) const {
  const State& s = *state_;
  const Program::Buffer& buffer = s.program().buffers[index];
  BoundBuffer bound{s.shapes[index], s.bytes_of(index), 0, nullptr};
  switch (buffer.place) {
    case Program::Place::Constant:
      bound.offset = buffer.offset;
      bound.data = s.constant(static_cast<std::uint32_t>(index));
      break;
    case Program::Place::Arena:
      bound.offset = s.offsets[index];
      if (!s.device) bound.data = s.arena.data() + bound.offset;
      break;
    case Program::Place::Input:
      if (buffer.offset < s.run_inputs.size()) bound.data = static_cast<const std::byte*>(s.run_inputs[buffer.offset]);
      break;
    case Program::Place::Output:
      if (buffer.offset < s.run_outputs.size()) bound.data = static_cast<const std::byte*>(s.run_outputs[buffer.offset]);
      break;
  }
  return bound;
}

std::span<std::byte> Context::arena() { return {state_->arena.data(), state_->arena.bytes()}; }

std::span<const std::int64_t> Context::symbol_values() const { return state_->symbols; }

void Context::State::run_on_device(std::span<const void* const> inputs, std::span<void* const> outputs,
                                   std::span<double> seconds) {
  const ContextUse use(is_in_use);
  TENON_ASSERT(is_bound, "shapes are bound before a run");
  device->run(inputs, outputs, seconds);
}

// What happens behind each step is part of the type: a run that nobody watches pays nothing for those that
// somebody does.
template <class Seen>
void Context::State::run(std::span<const void* const> inputs, std::span<void* const> outputs, Seen& seen) {
  const ContextUse use(is_in_use);
  TENON_ASSERT(is_bound, "shapes are bound before a run");
  for (const Patch& patch : patches) {
    pointers[patch.pointer] =
        patch.is_input ? const_cast<void*>(inputs[patch.port]) : outputs[patch.port];  // NOLINT: only read
  }
  run_inputs = inputs;
  run_outputs = outputs;
  error = 0;
  const auto run_chunk = [](void* opaque, std::size_t thread, std::int64_t begin, std::int64_t end) {
    const auto& step = *static_cast<const ReadyStep*>(opaque);
    if constexpr (Seen::is_on) {
      const std::uint64_t first = ticks();
      step.owner->run_items(step, thread, begin, end);
      step.owner->watch->saw(step.step, thread, first);
    } else {
      step.owner->run_items(step, thread, begin, end);
    }
  };
  ThreadPool::Caller caller(ThreadPool::shared());
  seen.begin_run();
  for (ReadyStep& step : steps) {
    std::unique_ptr<GuardedCall> guards = guard ? guarded(step) : nullptr;
    if (has_run || is_compared(step)) {
      caller.for_each(step.work, step.chunk, thread_count, run_chunk, &step);
    } else {
      compare_and_run(step, caller);
    }
    require_checks_held(step);
    guards.reset();
    seen.end_step(step.step);
  }
  has_run = true;
}

void Context::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  if (state_->device) return state_->run_on_device(inputs, outputs, {});
  NoWatch nothing;
  state_->run(inputs, outputs, nothing);
}

void Context::run(std::span<const void* const> inputs, std::span<void* const> outputs, Watch& watch) {
  watch.prepare(state_->program().steps.size(), static_cast<std::size_t>(state_->thread_count));
  if (state_->device) {
    std::vector<double> seconds(watch.step_count());
    watch.begin_run();
    state_->run_on_device(inputs, outputs, seconds);
    watch.put(seconds);
    return;
  }
  state_->watch = &watch;
  state_->run(inputs, outputs, watch);
}

void Context::run(std::span<const void* const> inputs, std::span<void* const> outputs, const Look& look) {
  if (state_->device) {
    throw Error("values inside a run on a device are not looked at", ErrorKind::Unsupported).hint("take --target=cpu");
  }
  struct Looking : NoWatch {
    const Look* look;
    void end_step(std::size_t step) { (*look)(step); }
  } looking;
  looking.look = &look;
  state_->run(inputs, outputs, looking);
}

}  // namespace tenon
