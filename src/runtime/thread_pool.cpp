#include "runtime/thread_pool.h"

#include "runtime/processors.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <thread>

namespace tenon::inline runtime {
namespace {

// Less than a millisecond: longer than the gap between two steps or two runs of a busy server, far
// shorter than an idle period.
constexpr int kSpins = 20000;

// Protocol between caller and worker. A caller claims an Idle worker (Taken), writes the job and
// sets Ready. The worker sets Running and, when done, Idle. A caller that has finished all the work
// itself takes back a worker that is still Ready, so that a worker which the system has not woken
// yet delays no job. The higher bits count jobs, so that a worker is never confused about whose job
// it runs (ABA).
enum JobState : std::uint32_t { Idle, Taken, Ready, Running, Stop };
constexpr std::uint32_t kStateMask = 7, kNextJob = 8;

std::uint32_t state_in(std::uint32_t word) { return word & kStateMask; }
std::uint32_t with_state(std::uint32_t word, JobState state) {
  return (word & ~kStateMask) | state;
}
bool is_called(std::uint32_t word) { return state_in(word) == Ready || state_in(word) == Stop; }

}  // namespace

// Work stealing with fixed shares: every thread owns a contiguous share of the chunks, the same
// from job to job, so that its data stays in its own cache. A thread that has finished its share
// steals from the far end of another's.
struct ThreadPool::Job {
  Run run;
  void* state;
  std::int64_t count, chunk, chunks;
  std::size_t threads;
  Order order;
  struct alignas(64) Share {
    std::uint64_t left;  // low 32 bits: next chunk; high 32 bits: end of the share
  };
  std::array<Share, kMaxWorkers + 1> shares;  // by thread; only used entries are initialized

  std::int64_t first_chunk(std::size_t thread) const {
    return chunks * static_cast<std::int64_t>(thread) / static_cast<std::int64_t>(threads);
  }
  // First chunk of a thread's share in its direction.
  std::int64_t begins_with(std::size_t thread) const {
    return order == Order::Forward ? first_chunk(thread) : first_chunk(thread + 1) - 1;
  }
  void share_out(std::size_t thread, std::int64_t taken) {
    const bool is_forward = order == Order::Forward;
    const auto first = static_cast<std::uint64_t>(first_chunk(thread) + (is_forward ? taken : 0));
    const auto end = static_cast<std::uint64_t>(first_chunk(thread + 1) - (is_forward ? 0 : taken));
    shares[thread].left = first | end << 32;
  }
  void run_chunk(std::size_t thread, std::int64_t index) const {
    run(state, thread, index * chunk, std::min((index + 1) * chunk, count));
  }
  // Takes a chunk from a share and returns its index; negative if the share is empty.
  std::int64_t take(std::size_t share, bool from_end) {
    const std::atomic_ref<std::uint64_t> left(shares[share].left);
    std::uint64_t seen = left.load(std::memory_order_relaxed);
    for (;;) {
      const std::uint64_t next = seen & 0xffffffff, end = seen >> 32;
      if (next >= end) return -1;
      const std::uint64_t rest = from_end ? next | (end - 1) << 32 : seen + 1;
      if (left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
        return static_cast<std::int64_t>(from_end ? end - 1 : next);
      }
    }
  }
  void take_chunks(std::size_t thread) {
    for (std::size_t k = 0; k < threads; ++k) {
      const std::size_t share = (thread + k) % threads;
      const bool from_end = (k > 0) == (order == Order::Forward);
      for (std::int64_t index = take(share, from_end); index >= 0; index = take(share, from_end))
        run_chunk(thread, index);
    }
  }
};

// A worker's first chunk is in the same cache line as its state word: for small jobs the only line
// that it loads from the caller's cache.
struct alignas(64) ThreadPool::Worker {
  std::atomic<std::uint32_t> word{Idle};
  std::uint32_t number = 0;  // index in the job
  Run run = nullptr;
  void* state = nullptr;
  std::int64_t begin = 0, end = 0;
  Job* job = nullptr;  // for more work than the first chunk
  std::atomic<bool> is_asleep{false};
  int processor = -1;      // processor at the start of its last job
  bool is_placed = false;  // `allowed` must be restored
  cpu_set_t allowed{};
  alignas(64) std::thread thread;
};

// Placement of woken threads. The scheduler may place a woken thread on the processor of the waker,
// or of another woken thread, where it waits several milliseconds until load balancing. The threads
// of a job are therefore pinned apart while they wake: one processor each if the job has one thread
// per processor, else any processor without a running thread of the job. Afterwards each thread
// gets its old affinity back.
class ThreadPool::WorkerSlots {
 public:
  explicit WorkerSlots(std::size_t threads) : threads_(threads) {
    CPU_ZERO(&taken_);
    take(sched_getcpu());
  }
  void take(int processor) {
    if (processor >= 0) CPU_SET(static_cast<std::size_t>(processor), &taken_);
  }
  void place(Worker& worker) {
    const pthread_t thread = worker.thread.native_handle();
    if (!worker.is_placed &&
        pthread_getaffinity_np(thread, sizeof worker.allowed, &worker.allowed) != 0)
      return;
    cpu_set_t free;
    CPU_XOR(&free, &worker.allowed, &taken_);
    CPU_AND(&free, &free, &worker.allowed);
    if (CPU_COUNT(&free) == 0) return;
    if (threads_ >= static_cast<std::size_t>(CPU_COUNT(&worker.allowed))) {
      std::size_t chosen = worker.processor < 0 ? 0 : static_cast<std::size_t>(worker.processor);
      while (!CPU_ISSET(chosen, &free)) chosen = (chosen + 1) % CPU_SETSIZE;
      CPU_ZERO(&free);
      CPU_SET(chosen, &free);
      CPU_SET(chosen, &taken_);
    }
    if (pthread_setaffinity_np(thread, sizeof free, &free) == 0) worker.is_placed = true;
  }

 private:
  std::size_t threads_;
  cpu_set_t taken_;
};

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool(usable_threads());
  return pool;
}

ThreadPool::ThreadPool(int capacity) : capacity_(std::max(1, capacity)) {}

ThreadPool::~ThreadPool() {
  for (std::size_t k = 0; k < worker_count_; ++k) {
    workers_[k]->word.store(Stop, std::memory_order_release);
    workers_[k]->word.notify_all();
    workers_[k]->thread.join();
  }
}

void ThreadPool::reserve(int helper_count) {
  const std::lock_guard lock(growing_);
  const std::size_t there = worker_count_.load();
  const int most = std::max(capacity_ - 1, helper_count);
  const auto wanted = std::min({there + static_cast<std::size_t>(std::max(0, helper_count)),
                                static_cast<std::size_t>(most), kMaxWorkers});
  for (std::size_t k = there; k < wanted; ++k) {
    auto worker = std::make_unique<Worker>();
    try {
      worker->thread = std::thread([this, made = worker.get()] { work(*made); });
    } catch (const std::system_error&) {
      return;  // fewer threads do the work
    }
    workers_[k] = std::move(worker);
    worker_count_.store(k + 1, std::memory_order_release);
  }
}

ThreadPool::Activity ThreadPool::activity() const {
  return {static_cast<int>(worker_count_.load()), asleep_.load(), sleeps_.load()};
}

void ThreadPool::work(Worker& worker) {
  for (;;) {
    std::uint32_t word = worker.word.load(std::memory_order_acquire);
    for (int spin = 0; spin < kSpins && !is_called(word); ++spin) {
      _mm_pause();
      word = worker.word.load(std::memory_order_acquire);
    }
    while (!is_called(word)) {
      asleep_.fetch_add(1, std::memory_order_relaxed);
      sleeps_.fetch_add(1, std::memory_order_relaxed);
      worker.is_asleep.store(true, std::memory_order_relaxed);
      worker.word.wait(word, std::memory_order_acquire);
      worker.is_asleep.store(false, std::memory_order_relaxed);
      asleep_.fetch_sub(1, std::memory_order_relaxed);
      word = worker.word.load(std::memory_order_acquire);
    }
    if (state_in(word) == Stop) return;
    const std::uint32_t running = with_state(word, Running);
    if (!worker.word.compare_exchange_strong(word, running, std::memory_order_acq_rel)) continue;
    worker.processor = sched_getcpu();
    if (worker.is_placed) {
      sched_setaffinity(0, sizeof worker.allowed, &worker.allowed);
      worker.is_placed = false;
    }
    worker.run(worker.state, worker.number, worker.begin, worker.end);
    if (worker.job != nullptr) worker.job->take_chunks(worker.number);
    worker.word.store(with_state(running, Idle), std::memory_order_release);
    worker.word.notify_all();
  }
}

int ThreadPool::take_helpers(int wanted) {
  int busy = busy_.load(std::memory_order_relaxed);
  for (;;) {
    // A single caller gets all the threads that it requests.
    const bool is_alone = callers_.load(std::memory_order_relaxed) == 1;
    const int granted = is_alone ? wanted : std::clamp(capacity_ - busy, 0, wanted);
    if (granted == 0) return 0;
    if (busy_.compare_exchange_weak(busy, busy + granted, std::memory_order_relaxed))
      return granted;
  }
}

ThreadPool::Caller::Caller(ThreadPool& pool) : pool_(pool) {
  pool_.callers_.fetch_add(1, std::memory_order_relaxed);
  pool_.busy_.fetch_add(1, std::memory_order_relaxed);
}

ThreadPool::Caller::~Caller() {
  pool_.busy_.fetch_sub(1, std::memory_order_relaxed);
  pool_.callers_.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::Caller::for_each(std::int64_t count, std::int64_t chunk, int thread_count, Run run,
                                  void* state, Order order) {
  if (count <= 0) return;
  constexpr std::int64_t most_chunks = std::numeric_limits<std::int32_t>::max();
  chunk = std::max({chunk, std::int64_t{1}, (count - 1) / most_chunks + 1});
  const std::int64_t chunks = (count - 1) / chunk + 1;
  const auto wanted = static_cast<int>(std::min<std::int64_t>(thread_count, chunks) - 1);
  const int granted = wanted > 0 ? pool_.take_helpers(wanted) : 0;
  struct Helper {
    Worker* worker;
    std::uint32_t ready;
  };
  std::array<Helper, kMaxWorkers> helpers;  // NOLINT: only used entries are initialized
  std::size_t helper_count = 0;
  const std::size_t worker_count =
      granted > 0 ? pool_.worker_count_.load(std::memory_order_acquire) : 0;
  for (std::size_t k = 0; k < worker_count && helper_count < static_cast<std::size_t>(granted);
       ++k) {
    Worker& worker = *pool_.workers_[k];
    std::uint32_t word = worker.word.load(std::memory_order_relaxed);
    const std::uint32_t taken = with_state(word + kNextJob, Taken);
    if (state_in(word) != Idle) continue;
    if (!worker.word.compare_exchange_strong(word, taken, std::memory_order_acq_rel)) continue;
    helpers[helper_count++] = {&worker, with_state(taken, Ready)};
  }
  if (helper_count == 0) {
    run(state, 0, 0, count);
  } else {
    Job job;  // NOLINT: only used shares are initialized
    job.run = run;
    job.state = state;
    job.count = count;
    job.chunk = chunk;
    job.chunks = chunks;
    job.threads = helper_count + 1;
    job.order = order;
    const bool has_more = chunks > static_cast<std::int64_t>(job.threads);
    for (std::size_t k = 0; k < job.threads; ++k) job.share_out(k, k == 0 ? 0 : 1);
    const auto is_asleep = [](const Helper& helper) {
      return helper.worker->is_asleep.load(std::memory_order_relaxed);
    };
    if (std::any_of(helpers.begin(), helpers.begin() + helper_count, is_asleep)) {
      WorkerSlots places(job.threads);
      for (std::size_t k = 0; k < helper_count; ++k)
        if (!is_asleep(helpers[k])) places.take(helpers[k].worker->processor);
      for (std::size_t k = 0; k < helper_count; ++k)
        if (is_asleep(helpers[k])) places.place(*helpers[k].worker);
    }
    for (std::size_t k = 0; k < helper_count; ++k) {
      Worker& worker = *helpers[k].worker;
      worker.number = static_cast<std::uint32_t>(k + 1);
      worker.run = run;
      worker.state = state;
      worker.begin = job.begins_with(k + 1) * chunk;
      worker.end = std::min(worker.begin + chunk, count);
      worker.job = has_more ? &job : nullptr;
      worker.word.store(helpers[k].ready, std::memory_order_release);
      worker.word.notify_all();
    }
    job.take_chunks(0);
    for (std::size_t k = 0; k < helper_count; ++k) {
      std::atomic<std::uint32_t>& word = helpers[k].worker->word;
      const std::uint32_t running = with_state(helpers[k].ready, Running);
      std::uint32_t ready = helpers[k].ready;
      if (word.compare_exchange_strong(ready, with_state(ready, Idle), std::memory_order_acq_rel)) {
        job.run_chunk(0, job.begins_with(k + 1));
        continue;
      }
      for (int spin = 0; spin < kSpins && word.load(std::memory_order_acquire) == running; ++spin)
        _mm_pause();
      while (word.load(std::memory_order_acquire) == running)
        word.wait(running, std::memory_order_acquire);
    }
  }
  if (granted > 0) pool_.busy_.fetch_sub(granted, std::memory_order_relaxed);
}

}  // namespace tenon::inline runtime
