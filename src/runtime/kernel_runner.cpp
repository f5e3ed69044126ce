#include "runtime/kernel_runner.h"

#include "base/error.h"
#include "program/checksum.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace tenon::inline runtime {
namespace {

// Enough chunks to balance threads of uneven speed, few enough to make the overhead negligible.
constexpr std::int64_t kChunksPerThread = 4;
// Below the first size, waking a second thread costs more than it saves. Below the second, a job is
// not divided further.
constexpr std::uint64_t kBytesForOne = 16 << 10, kBytesInOnePiece = 256 << 10;

// Constants from this size on are verified while they are read, in pieces of the second size.
constexpr std::uint64_t kBytesStreamed = 1 << 20, kBytesAtOnce = 512 << 10;

std::uint64_t own_cache_bytes() {
  static const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return found > 0 ? static_cast<std::uint64_t>(found) : 1 << 20;
}

}  // namespace

KernelRunner::KernelRunner(std::shared_ptr<const Executable> model, int thread_count)
    : BoundShapes(model->program()), model_(std::move(model)), thread_count_(thread_count) {
  addresses_.resize(program().buffers.size(), nullptr);
  prepared_.resize(model_->segments().size());
  if (model_->device() != nullptr) {
    for (Prepared& each : prepared_) each.device = model_->device()->make_context();
  }
  ThreadPool::shared().reserve(thread_count_ - 1);
}
KernelRunner::~KernelRunner() = default;

std::uint64_t KernelRunner::arena_bytes() const {
  std::uint64_t bytes = arena_.bytes();
  for (const Prepared& each : prepared_) bytes += each.device ? each.device->arena_bytes() : 0;
  return bytes;
}

std::uint64_t KernelRunner::pinned_bytes() const {
  std::uint64_t bytes = 0;
  for (const Prepared& each : prepared_) bytes += each.device ? each.device->pinned_bytes() : 0;
  return bytes;
}

std::uint64_t KernelRunner::device_bytes() const {
  std::uint64_t bytes = 0;
  for (const Prepared& each : prepared_) bytes += each.device ? each.device->device_bytes() : 0;
  return bytes;
}

std::uint64_t KernelRunner::scratch_bytes() const {
  std::uint64_t bytes = scratch_.bytes();
  for (const Prepared& each : prepared_) bytes += each.device ? each.device->scratch_bytes() : 0;
  return bytes;
}

void KernelRunner::bind(std::span<const std::vector<std::int64_t>> input_shapes) {
  is_bound_ = false;
  for (Prepared& each : prepared_) each.is_ready = false;
  BoundShapes::bind(input_shapes);
  const Program& p = program();
  const bool is_alone = p.is_kernel_only();
  // On a device, buffers between kernels live in device memory; the host arena holds what host
  // steps share with them.
  const bool has_arena = model_->device() == nullptr || !is_alone;
  if (has_arena && planned_bytes > arena_.bytes() && !arena_.allocate(planned_bytes)) {
    throw no_arena(p, all_bytes(), planned_bytes);
  }
  if (model_->device() == nullptr && !p.transfers.empty() && !swapper_)
    swapper_ = std::make_unique<Swapper>(p, all_bytes());
  scratch_stride_ = 0;
  if (is_alone) prepare(0);
  is_bound_ = true;
}

std::byte* KernelRunner::address(std::uint32_t buffer) const {
  const Program& p = program();
  switch (p.buffers[buffer].place) {
    case Program::BufferKind::Constant: {
      const auto found = replaced_.find(buffer);
      const std::byte* data =
          found != replaced_.end() ? found->second : p.constants.get() + p.buffers[buffer].offset;
      return const_cast<std::byte*>(data);  // NOLINT: only read
    }
    case Program::BufferKind::Arena:
      return arena_.data() == nullptr ? nullptr : arena_.data() + offsets[buffer];
    case Program::BufferKind::View:
      return address(static_cast<std::uint32_t>(p.buffers[buffer].offset));
    default:
      return static_cast<std::byte*>(addresses_[buffer]);
  }
}

void KernelRunner::replace_constant(std::uint32_t buffer, const std::byte* data) {
  replaced_[buffer] = data;
  for (std::size_t k = 0; k < prepared_.size(); ++k) {
    if (prepared_[k].is_ready) place_buffers(model_->segments()[k], prepared_[k]);
  }
}

void KernelRunner::prepare(std::size_t segment) {
  Prepared& prepared = prepared_[segment];
  const Segment& described = model_->segments()[segment];
  if (prepared.is_ready &&
      std::ranges::equal(prepared.symbols, described.symbols, {}, {},
                         [&](std::uint32_t symbol) { return symbols[symbol]; })) {
    return;
  }
  prepared.is_ready = prepared.has_run = false;
  check_symbols(described.begin);
  place_buffers(described, prepared);
  if (prepared.device) {
    prepared.device->prepare(*this, described);
  } else {
    prepare_steps(described, prepared);
  }
  prepared.symbols.clear();
  for (const std::uint32_t symbol : described.symbols) prepared.symbols.push_back(symbols[symbol]);
  prepared.is_ready = true;
}

void KernelRunner::place_buffers(const Segment& segment, Prepared& prepared) {
  const Program& p = program();
  prepared.pointers.clear();
  prepared.patches.clear();
  for (std::uint32_t k = segment.begin; k < segment.end; ++k) {
    const bool is_needed = runs(p.steps[k]);
    for (const std::uint32_t id : p.steps[k].buffers) {
      if (std::ranges::any_of(p.buffers[id].dims,
                              [](const Extent& dim) { return !dim.is_number(); }))
        compute_shape(id, is_needed);
      // Memory was planned without the buffers that had no shape.
      const std::uint32_t root = root_of(p, id);
      if (p.buffers[root].place == Program::BufferKind::Arena && !has_shape[root])
        compute_shape(root, is_needed);
      const Program::BufferKind place = p.buffers[id].place;
      const bool is_fixed =
          place == Program::BufferKind::Constant || place == Program::BufferKind::Arena;
      if (!is_fixed) prepared.patches.push_back({prepared.pointers.size(), id});
      prepared.pointers.push_back(is_fixed ? address(id) : nullptr);
    }
  }
}

std::unique_ptr<GuardedCall> KernelRunner::guarded(const ReadyStep& ready) {
  const std::vector<std::uint32_t>& buffers = program().steps[ready.step].buffers;
  const std::span<void*> all(ready.segment->pointers.data() + ready.first_pointer, buffers.size());
  std::vector<GuardedCall::Argument> arguments;
  for (std::size_t k = 0; k < buffers.size(); ++k) {
    const Program::BufferKind place = program().buffers[root_of(program(), buffers[k])].place;
    const bool is_read_only =
        place == Program::BufferKind::Constant || place == Program::BufferKind::Input;
    arguments.push_back({all[k], bytes_of(buffers[k]), is_read_only});
  }
  return std::make_unique<GuardedCall>(all, arguments, *guard_);
}

std::int64_t KernelRunner::chunk_of(const Program::Step& step, std::int64_t work) const {
  std::uint64_t bytes = 0;
  for (const std::uint32_t buffer : step.buffers) bytes += bytes_of(buffer);
  if (bytes <= kBytesForOne) return work;
  const std::int64_t pieces = bytes <= kBytesInOnePiece ? 1 : kChunksPerThread;
  return std::max<std::int64_t>(1, (work + thread_count_ - 1) / thread_count_ / pieces);
}

void KernelRunner::prepare_steps(const Segment& segment, Prepared& prepared) {
  const Program& p = program();
  prepared.steps.clear();
  prepared.extents.clear();
  std::size_t pointer = 0, hungriest = segment.begin;
  std::uint64_t stride = 0;
  for (std::size_t k = segment.begin; k < segment.end; ++k) {
    const Program::Step& step = p.steps[k];
    const std::size_t first_pointer = pointer;
    pointer += step.buffers.size();
    if (!runs(step)) continue;
    const ReadyStep ready{model_->kernel(step.kernel),
                          first_pointer,
                          prepared.extents.size(),
                          value_of(step.work, step),
                          1,
                          k,
                          &prepared,
                          this};
    for (const Extent& extent : step.extents) prepared.extents.push_back(value_of(extent, step));
    const auto wanted =
        static_cast<std::uint64_t>(value_of(p.kernels[step.kernel].scratch_bytes, step));
    if (wanted > kMaxBytes) throw no_scratch(p, k, wanted, thread_count_);
    if ((wanted + 4095) / 4096 * 4096 > stride) {
      stride = (wanted + 4095) / 4096 * 4096;
      hungriest = k;
    }
    if (ready.work <= 0) continue;
    prepared.steps.push_back(ready);
    prepared.steps.back().chunk = chunk_of(step, ready.work);
  }
  if (!guard_) find_reversed_steps(prepared);
  if (guard_) stride += kGuardBytes;
  const bool grows = stride > scratch_stride_;
  scratch_stride_ = std::max(scratch_stride_, stride);
  const std::uint64_t bytes = scratch_stride_ * static_cast<std::uint64_t>(thread_count_);
  const bool is_enough = bytes <= scratch_.bytes() && !(guard_ && grows);
  if (!is_enough && !scratch_.allocate(bytes))
    throw no_scratch(p, hungriest, scratch_stride_, thread_count_);
  for (std::size_t end = scratch_stride_; guard_ && grows && end <= bytes; end += scratch_stride_) {
    forbid(scratch_.data() + end - kGuardBytes, kGuardBytes);
  }
}

// Weights slightly larger than L2, read in the same order in every run, evict each other before
// reuse (LRU thrashing). Alternating the direction from run to run reuses the most recently read
// part. Excluded: weights with many rows per read, which are compute-bound and prefetched, and
// weights of many times the cache, of which too little survives.
void KernelRunner::find_reversed_steps(Prepared& prepared) const {
  constexpr double kMostCaches = 8, kMostRows = 8, kBytesOfCall = 4096;
  const auto constant_bytes = [&](const ReadyStep& ready) {
    std::uint64_t bytes = 0;
    for_each_constant(ready, [&](const Read& read) { bytes += read.bytes; });
    return static_cast<double>(bytes);
  };
  double all = 0;
  for (const ReadyStep& ready : prepared.steps) all += constant_bytes(ready);
  const double caches = all / thread_count_ / static_cast<double>(own_cache_bytes());
  if (caches < 0.5 || caches > kMostCaches) return;
  for (ReadyStep& ready : prepared.steps) {
    double others = 0;
    for (const std::uint32_t id : program().steps[ready.step].buffers)
      others += static_cast<double>(bytes_of(id));
    const double weights = constant_bytes(ready);
    others -= weights;
    // A matrix-vector product with square weights accesses two sides' worth of other elements.
    const double side = 4 * std::sqrt(weights / 4);
    if (weights < kBytesOfCall || others > kMostRows * 2 * side) continue;
    ready.reversed_items = static_cast<std::int64_t>(
        std::ceil(static_cast<double>(ready.work) * kBytesOfCall / weights));
  }
}

std::byte* KernelRunner::scratch_for(const ReadyStep& ready, std::size_t thread) const {
  if (!guard_) return scratch_of(thread);
  const Program::Kernel& kernel = program().kernels[program().steps[ready.step].kernel];
  return scratch_of(thread + 1) - kGuardBytes - kernel.scratch_bytes.value(symbols);
}

// Large constants are verified piecewise by the thread that reads them next, which leaves them in
// its cache. The mapping from items to pieces is a guess: constants are packed in read order. If it
// is wrong, a kernel reads bytes before their verification, but no result is returned before. Such
// reads must be harmless, so only floats are verified this way, never indices.
bool KernelRunner::Read::is_streamed() const {
  const bool is_real = buffer->dtype == "f32" || buffer->dtype == "f64" || buffer->dtype == "f16" ||
                       buffer->dtype == "bf16";
  return bytes >= kBytesStreamed && is_real && !buffer->is_looked_up;
}

template <class F>
void KernelRunner::for_each_constant(const ReadyStep& ready, F visit) const {
  for (const std::uint32_t id : program().steps[ready.step].buffers) {
    const Program::Buffer& buffer = program().buffers[id];
    if (buffer.place == Program::BufferKind::Constant) visit(Read{&buffer, bytes_of(id)});
  }
}

bool KernelRunner::is_compared(const ReadyStep& ready) const {
  bool are_all = true;
  for_each_constant(ready, [&](const Read& read) {
    are_all = are_all && model_->is_compared(read.buffer->offset, read.buffer->offset + read.bytes);
  });
  return are_all;
}

void KernelRunner::compare_before(const ReadyStep& ready, ThreadPool::Caller& caller) {
  struct Blocks {
    KernelRunner* state;
    std::uint64_t begin, end;
    std::atomic<bool> has_compared;
  };
  const auto compare = [](void* opaque, std::size_t, std::int64_t from, std::int64_t to) {
    auto& [state, begin, end, has_compared] = *static_cast<Blocks*>(opaque);
    const std::uint64_t first = begin / kChecksumBlock * kChecksumBlock;
    const auto block_end = [&](std::int64_t block) {
      return first + static_cast<std::uint64_t>(block) * kChecksumBlock;
    };
    if (state->model_->compare(std::max(begin, block_end(from)), std::min(end, block_end(to)),
                               state->is_altered_)) {
      has_compared.store(true, std::memory_order_relaxed);
    }
  };
  for_each_constant(ready, [&](const Read& read) {
    if (read.is_streamed() || read.bytes == 0) return;
    Blocks blocks{this, read.buffer->offset, read.buffer->offset + read.bytes, false};
    const std::uint64_t count =
        (blocks.end - 1) / kChecksumBlock - blocks.begin / kChecksumBlock + 1;
    caller.for_each(static_cast<std::int64_t>(count), 1, thread_count_, compare, &blocks);
    // Verification read the whole table, but a run needs only a few rows.
    if (!blocks.has_compared || !read.buffer->is_looked_up || !program().is_mapped) return;
    release(program().constants.get() + read.buffer->offset, read.bytes);
  });
}

std::int64_t KernelRunner::items_at_once(const ReadyStep& ready) const {
  std::uint64_t bytes = 0;
  for_each_constant(ready, [&](const Read& read) { bytes += read.is_streamed() ? read.bytes : 0; });
  return std::max<std::int64_t>(1,
                                ready.work / static_cast<std::int64_t>(bytes / kBytesAtOnce + 1));
}

void KernelRunner::compare_share(const ReadyStep& ready, std::int64_t begin, std::int64_t end) {
  for_each_constant(ready, [&](const Read& read) {
    if (!read.is_streamed()) return;
    const auto place = [&](std::int64_t item) {
      return read.buffer->offset + static_cast<std::uint64_t>(static_cast<double>(read.bytes) *
                                                              static_cast<double>(item) /
                                                              static_cast<double>(ready.work));
    };
    model_->compare(place(begin), end == ready.work ? read.buffer->offset + read.bytes : place(end),
                    is_altered_);
  });
}

void KernelRunner::run_items(const ReadyStep& ready, std::size_t thread, std::int64_t begin,
                             std::int64_t end) {
  const KernelArguments arguments{ready.segment->pointers.data() + ready.first_pointer,
                                  ready.segment->extents.data() + ready.first_extent,
                                  scratch_for(ready, thread), &error_};
  if (ready.reversed_items == 0 || ready.segment->order == ThreadPool::Order::Forward) {
    ready.kernel(&arguments, begin, end);
    return;
  }
  for (std::int64_t at = end; at > begin; at -= ready.reversed_items)
    ready.kernel(&arguments, std::max(begin, at - ready.reversed_items), at);
}

void KernelRunner::compare_and_run(ReadyStep& ready, ThreadPool::Caller& caller) {
  is_altered_ = false;
  compare_before(ready, caller);
  if (is_altered_) throw altered_constants(program(), ready.step);
  const auto run_chunk = [](void* opaque, std::size_t thread, std::int64_t begin,
                            std::int64_t end) {
    const auto& step = *static_cast<const ReadyStep*>(opaque);
    const std::int64_t items = step.owner->items_at_once(step);
    for (std::int64_t at = begin, next = 0; at < end; at = next) {
      next = std::min(at + items, end);
      step.owner->compare_share(step, at, next);
      step.owner->run_items(step, thread, at, next);
    }
  };
  caller.for_each(ready.work, ready.chunk, thread_count_, run_chunk, &ready);
  if (is_altered_) throw altered_constants(program(), ready.step);
}

void KernelRunner::require_checks_passed(const ReadyStep& ready) const {
  if (error_ == 0) return;
  const Program::Step& step = program().steps[ready.step];
  const auto& checks = program().kernels[step.kernel].checks;
  const auto number = static_cast<std::size_t>(error_);
  throw Error(number >= 1 && number <= checks.size() ? checks[number - 1]
                                                     : "the data breaks an operator's rules")
      .at("node '", step.value, "'");
}

void KernelRunner::require_intact(std::uint32_t constant) const {
  const std::uint64_t begin = program().buffers[constant].offset, end = begin + bytes_of(constant);
  if (model_->is_compared(begin, end)) return;
  std::atomic<bool> is_altered = false;
  model_->compare(begin, end, is_altered);
  if (is_altered) throw altered_constants(program());
}

KernelRunner::BoundPorts KernelRunner::places_of(std::size_t segment) const {
  const Segment& described = model_->segments()[segment];
  BoundPorts places;
  for (const std::uint32_t id : described.reads) places.sources.push_back(address(id));
  for (const std::uint32_t id : described.writes) places.targets.push_back(address(id));
  return places;
}

void KernelRunner::run_on_device(std::size_t segment, std::span<double> seconds) {
  const BoundPorts places = places_of(segment);
  prepared_[segment].device->run(places.sources, places.targets, seconds);
}

// Observers are a template parameter: a run without observer has no overhead.
template <class Seen>
void KernelRunner::run_steps(Prepared& prepared, Seen& seen) {
  TENON_ASSERT(prepared.is_ready, "shapes are bound before a run");
  for (const Patch& patch : prepared.patches)
    prepared.pointers[patch.pointer] = addresses_[patch.buffer];
  error_ = 0;
  const auto run_chunk = [](void* opaque, std::size_t thread, std::int64_t begin,
                            std::int64_t end) {
    const auto& step = *static_cast<const ReadyStep*>(opaque);
    if constexpr (Seen::is_on) {
      // Steps on a single thread need no piece per thread.
      if (end - begin < step.work && step.owner->watch_->is_sampling()) {
        Watch::Piece& piece = step.owner->watch_->piece(thread);
        if (!piece.is_there()) piece.begin = ticks();
        step.owner->run_items(step, thread, begin, end);
        piece.end = ticks();
        return;
      }
    }
    step.owner->run_items(step, thread, begin, end);
  };
  ThreadPool::Caller caller(ThreadPool::shared());
  // Even if a run fails, no pending transfer may write into the arena afterwards.
  struct Swapping {
    Swapper* swapper;
    ~Swapping() {
      if (swapper != nullptr) swapper->abandon();
    }
  } const swapping{swapper_.get()};
  if (swapper_) swapper_->begin_run(arena_.data());
  seen.begin_run();
  for (ReadyStep& step : prepared.steps) {
    if (swapper_) swapper_->before(step.step);
    std::unique_ptr<GuardedCall> guards = guard_ ? guarded(step) : nullptr;
    if (prepared.has_run || is_compared(step)) {
      caller.for_each(step.work, step.chunk, thread_count_, run_chunk, &step,
                      step.reversed_items > 0 ? prepared.order : ThreadPool::Order::Forward);
    } else {
      compare_and_run(step, caller);
    }
    require_checks_passed(step);
    guards.reset();
    seen.end_step(step.step);
  }
  if (swapper_) swapper_->before(program().steps.size());
  prepared.has_run = true;
  prepared.order = prepared.order == ThreadPool::Order::Forward ? ThreadPool::Order::Backward
                                                                : ThreadPool::Order::Forward;
}

void KernelRunner::run(std::size_t segment) {
  if (prepared_[segment].device) return run_on_device(segment, {});
  NoWatch nothing;
  run_steps(prepared_[segment], nothing);
}

void KernelRunner::start(std::size_t segment) {
  if (!prepared_[segment].device) return run(segment);
  const BoundPorts places = places_of(segment);
  prepared_[segment].device->start(places.sources, places.targets);
}

void KernelRunner::finish(std::size_t segment) {
  if (prepared_[segment].device) prepared_[segment].device->finish();
}

void KernelRunner::run(std::size_t segment, Watch& watch) {
  const Segment& described = model_->segments()[segment];
  watch.prepare(described.end - described.begin, static_cast<std::size_t>(thread_count_));
  if (prepared_[segment].device) {
    std::vector<double> seconds(program().steps.size());
    watch.begin_run();
    run_on_device(segment, seconds);
    watch.put(seconds);
    return;
  }
  watch_ = &watch;
  run_steps(prepared_[segment], watch);
}

void KernelRunner::run(std::size_t segment, const StepObserver& look) {
  if (prepared_[segment].device) {
    throw Error("values inside a run on a device are not looked at", ErrorKind::Unsupported)
        .hint("take --target=cpu");
  }
  struct Observing : NoWatch {
    const StepObserver* look;
    void end_step(std::size_t step) { (*look)(step); }
  } looking;
  looking.look = &look;
  run_steps(prepared_[segment], looking);
}

}  // namespace tenon::inline runtime
