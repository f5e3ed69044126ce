#include "runtime/executable.h"

#include "base/error.h"
#include "program/checksum.h"
#include "program/target.h"
#include "runtime/kernel_runner.h"
#include "runtime/processors.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

namespace tenon::inline runtime {
namespace {

// Returns the program's code after a check that this processor supports it.
const std::vector<std::byte>& runnable_code(const Program& program) {
  require_target(program);
  return program.code;
}

}  // namespace

Error altered_constants(const Program& program, std::optional<std::size_t> step) {
  return Error("the program file is damaged")
      .at("program '", program.name, "'",
          step ? concat(", step '", program.steps[*step].name, "'") : "")
      .got("altered constants")
      .hint("compile the model again");
}

Executable::Executable(Program program) : Executable(std::move(program), load_on_device) {}

Executable::Executable(Program program, MakeDevice make_device)
    : program_(std::move(program)),
      segments_(segments_of(program_)),
      is_intact_(program_.constant_checksums.size()) {
  if (is_for_device(program_)) {
    // Device constants are verified as a whole: the copy reads them in any case.
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

bool Executable::is_compared(std::uint64_t begin, std::uint64_t end) const {
  if (is_intact_.empty() || begin >= end) return true;
  for (std::size_t block = begin / kChecksumBlock; block <= (end - 1) / kChecksumBlock; ++block) {
    if (!is_intact_[block].load(std::memory_order_relaxed)) return false;
  }
  return true;
}

bool Executable::compare(std::uint64_t begin, std::uint64_t end,
                         std::atomic<bool>& is_altered) const {
  if (is_intact_.empty() || begin >= end) return false;
  bool has_compared = false;
  for (std::size_t block = begin / kChecksumBlock; block <= (end - 1) / kChecksumBlock; ++block) {
    // Two threads may verify a block concurrently, with the same result.
    if (is_intact_[block].load(std::memory_order_relaxed)) continue;
    has_compared = true;
    const auto bytes = checksum_block({program_.constants.get(), program_.constant_bytes}, block);
    const bool is_intact = checksum(bytes) == program_.constant_checksums[block];
    (is_intact ? is_intact_[block] : is_altered).store(true, std::memory_order_relaxed);
  }
  return has_compared;
}

struct Context::State {
  State(std::shared_ptr<const Executable> model, int thread_count)
      : runner(std::move(model), thread_count) {}

  KernelRunner runner;
  std::atomic_flag is_in_use;
  bool is_under_way = false;  // a run was started; accessed by the holder of the context

  void require_idle() const {
    if (!is_under_way) return;
    throw Error("a run of the context is in progress", ErrorKind::Usage)
        .hint("finish it first, or take another context");
  }

  void place(std::span<const void* const> inputs, std::span<void* const> outputs) {
    const Program& p = runner.program();
    TENON_ASSERT(runner.is_bound(), "shapes are bound before a run");
    TENON_ASSERT(inputs.size() == p.inputs.size() && outputs.size() == p.outputs.size(),
                 "a place for each input and output");
    for (std::size_t k = 0; k < p.inputs.size(); ++k) {
      runner.set_address(p.inputs[k], const_cast<void*>(inputs[k]));  // NOLINT: only read
    }
    for (std::size_t k = 0; k < p.outputs.size(); ++k) runner.set_address(p.outputs[k], outputs[k]);
  }
};

ContextUse::ContextUse(std::atomic_flag& is_in_use) : is_in_use_(is_in_use) {
  if (is_in_use_.test_and_set(std::memory_order_acquire)) {
    throw Error("two threads use one context at the same time", ErrorKind::Usage)
        .hint("use one context per thread; contexts share the model");
  }
}

Context::Context(std::shared_ptr<const Executable> model, int thread_count) {
  if (!model->program().is_kernel_only()) {
    throw Error("the program has steps that are no kernels", ErrorKind::Unsupported)
        .at("program '", model->program().name, "'");
  }
  state_ =
      std::make_unique<State>(std::move(model), thread_count > 0 ? thread_count : usable_threads());
  const Program& p = state_->runner.program();
  if (p.symbols.empty()) {
    std::vector<std::vector<std::int64_t>> shapes;
    for (const std::uint32_t input : p.inputs) {
      auto& shape = shapes.emplace_back();
      for (const Extent& dim : p.buffers[input].dims) shape.push_back(dim.value({}));
    }
    bind(shapes);
  }
}
Context::Context(Context&&) noexcept = default;
Context::~Context() = default;

void Context::bind(std::span<const std::vector<std::int64_t>> input_shapes) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->runner.bind(input_shapes);
}

void Context::replace_constant(std::uint32_t buffer, const std::byte* data) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  TENON_ASSERT(program().buffers.at(buffer).is_weight, "only weights are replaced");
  if (is_on_device())
    throw Error("weights of a program on a device are not swapped", ErrorKind::Unsupported);
  state_->runner.replace_constant(buffer, data);
}

const Program& Context::program() const { return state_->runner.program(); }

const std::vector<std::int64_t>& Context::output_shape(std::size_t output) const {
  return state_->runner.output_shapes.at(output);
}

int Context::thread_count() const { return state_->runner.thread_count(); }
std::uint64_t Context::arena_bytes() const { return state_->runner.arena_bytes(); }
std::uint64_t Context::scratch_bytes() const { return state_->runner.scratch_bytes(); }
bool Context::is_on_device() const { return state_->runner.device() != nullptr; }

void Context::keep_on_device(std::vector<Feedback> states) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  TENON_ASSERT(is_on_device(), "states are kept on a device");
  state_->runner.device()->keep(std::move(states));
}

void Context::fetch_input(std::size_t input, void* target) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->runner.device()->fetch_input(input, target);
}

void Context::fetch_output(std::size_t output, void* target) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->runner.device()->fetch_output(output, target);
}

std::vector<TimedCandidates> Context::time_candidates(const std::vector<bool>& steps) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  TENON_ASSERT(is_on_device() && state_->runner.is_bound(), "shapes are bound on a device");
  return state_->runner.device()->time_candidates(steps);
}

double Context::time_steps(std::size_t first, std::size_t count) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  TENON_ASSERT(is_on_device() && state_->runner.is_bound(), "shapes are bound on a device");
  return state_->runner.device()->time_steps(first, count);
}

double Context::replay() {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  TENON_ASSERT(is_on_device() && state_->runner.is_bound(), "shapes are bound on a device");
  return state_->runner.device()->replay();
}

const KernelRunner& Context::runner() const { return state_->runner; }
std::span<std::byte> Context::arena() { return state_->runner.arena(); }

void Context::start(std::span<const void* const> inputs, std::span<void* const> outputs) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->place(inputs, outputs);
  state_->runner.start(0);
  state_->is_under_way = true;
}

void Context::require_idle() const { state_->require_idle(); }

void Context::finish() {
  const ContextUse use(state_->is_in_use);
  if (!state_->is_under_way) throw Error("no run of the context was started", ErrorKind::Usage);
  state_->is_under_way = false;
  state_->runner.finish(0);
}

void Context::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->place(inputs, outputs);
  state_->runner.run(0);
}

void Context::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                  Watch& watch) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->place(inputs, outputs);
  state_->runner.run(0, watch);
}

void Context::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                  const Look& look) {
  const ContextUse use(state_->is_in_use);
  state_->require_idle();
  state_->place(inputs, outputs);
  state_->runner.run(0, look);
}

}  // namespace tenon::inline runtime
