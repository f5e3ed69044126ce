#include "profile/machine_peak.h"

#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace tenon::profile {
namespace {

constexpr int kChains = 12;  // covers the latency of two FMA units
constexpr int kRepeats = 200'000;
constexpr std::size_t kMemoryBytes = std::size_t{128} << 20;
constexpr int kTrials = 5;
constexpr std::size_t kCachedBytes = std::size_t{256} << 10;  // fits a private cache of each core
constexpr int kCacheRepeats = 200;

// Empty asm statements that clobber the accumulators: otherwise the compiler would vectorize twelve
// chains into one, or drop the computation.

__attribute__((target("avx512f"))) double multiply_adds_512() {
  __m512 chains[kChains];
  for (int k = 0; k < kChains; ++k)
    chains[k] = _mm512_set1_ps(1.0F + 0.01F * static_cast<float>(k));
  const __m512 factor = _mm512_set1_ps(0.999999F), term = _mm512_set1_ps(1e-7F);
  for (int n = 0; n < kRepeats; ++n) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) {
      chains[k] = _mm512_fmadd_ps(chains[k], factor, term);
      asm volatile("" : "+v"(chains[k]));
    }
  }
  return 2.0 * 16 * kChains * kRepeats;
}

__attribute__((target("avx2,fma"))) double multiply_adds_256() {
  __m256 chains[kChains];
  for (int k = 0; k < kChains; ++k)
    chains[k] = _mm256_set1_ps(1.0F + 0.01F * static_cast<float>(k));
  const __m256 factor = _mm256_set1_ps(0.999999F), term = _mm256_set1_ps(1e-7F);
  for (int n = 0; n < kRepeats; ++n) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) {
      chains[k] = _mm256_fmadd_ps(chains[k], factor, term);
      asm volatile("" : "+x"(chains[k]));
    }
  }
  return 2.0 * 8 * kChains * kRepeats;
}

// Sums a range of memory with several accumulators, so that loads do not wait for additions.
double read_bytes(const std::uint64_t* data, std::size_t count) {
  std::uint64_t sums[8] = {};
  for (std::size_t n = 0; n + 8 <= count; n += 8) {
    for (int k = 0; k < 8; ++k) sums[k] += data[n + static_cast<std::size_t>(k)];
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) total += sum;
  asm volatile("" : : "r"(total) : "memory");
  return static_cast<double>(count) * 8;
}

// Returns the best of several trials of the total rate of all threads: work(thread) returns its
// amount.
double best_rate(int thread_count, const std::function<double(int)>& work) {
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    std::vector<double> amounts(static_cast<std::size_t>(thread_count));
    const auto run = [&](int index) {
      ++ready;
      while (ready < thread_count) std::this_thread::yield();
      amounts[static_cast<std::size_t>(index)] = work(index);
    };
    for (int k = 1; k < thread_count; ++k) threads.emplace_back(run, k);
    while (ready < thread_count - 1) std::this_thread::yield();
    const auto begin = std::chrono::steady_clock::now();
    run(0);
    for (std::thread& thread : threads) thread.join();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    double total = 0;
    for (const double amount : amounts) total += amount;
    best = std::max(best, total / elapsed.count());
  }
  return best;
}

}  // namespace

MachinePeak measure_machine_peak(int thread_count) {
  MachinePeak peak;
  const bool has_512 = __builtin_cpu_supports("avx512f"),
             has_256 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_512 || has_256) {
    peak.flops_per_s = best_rate(
        thread_count, [&](int) { return has_512 ? multiply_adds_512() : multiply_adds_256(); });
  }
  void* memory =
      mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) {
    madvise(memory, kMemoryBytes, MADV_HUGEPAGE);
    auto* words = static_cast<std::uint64_t*>(memory);
    const std::size_t count = kMemoryBytes / 8,
                      each = count / static_cast<std::size_t>(thread_count);
    std::fill_n(words, count, 1);
    peak.bytes_per_s = best_rate(thread_count, [&](int k) {
      return read_bytes(words + static_cast<std::size_t>(k) * each, each);
    });
    peak.cache_bytes_per_s = best_rate(thread_count, [&](int k) {
      double bytes = 0;
      for (int n = 0; n < kCacheRepeats; ++n) {
        bytes += read_bytes(words + static_cast<std::size_t>(k) * each,
                            std::min(each, kCachedBytes / 8));
      }
      return bytes;
    });
    munmap(memory, kMemoryBytes);
  }
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  peak.cache_bytes = cache > 0 ? static_cast<std::uint64_t>(cache) : 0;
  return peak;
}

double least_ms(const MachinePeak& peak, double flops, std::uint64_t constant_bytes) {
  const double compute = peak.flops_per_s > 0 ? flops / peak.flops_per_s : 0;
  const std::uint64_t read =
      constant_bytes > peak.cache_bytes ? constant_bytes - peak.cache_bytes : 0;
  const double memory = peak.bytes_per_s > 0 ? static_cast<double>(read) / peak.bytes_per_s : 0;
  return 1000 * std::max(compute, memory);
}

}  // namespace tenon::profile
