#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/out.h"
#include "cli/table.h"
#include "driver/targets.h"
#include "models/model.h"
#include "ops/definition/registry.h"
#include "profile/counters.h"
#include "profile/device_peak.h"
#include "profile/machine_peak.h"
#include "runtime/cuda/describe.h"
#include "runtime/processors.h"
#include "runtime/thread_pool.h"

#include <cpuid.h>
#include <nlohmann/json.hpp>
#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace tenon::cli {
namespace {

struct Finding {
  std::string what, found;
};

std::string vector_extensions() {
  std::string list;
  const auto note = [&](bool has, const char* name) {
    if (has) list += (list.empty() ? "" : ", ") + std::string(name);
  };
  note(__builtin_cpu_supports("avx2"), "AVX2");
  note(__builtin_cpu_supports("fma"), "FMA");
  note(__builtin_cpu_supports("avx512f"), "AVX-512");
  note(__builtin_cpu_supports("avx512vnni"), "AVX-512 VNNI");
  return list.empty() ? "none that Tenon looks for" : list;
}

std::string memory_text() {
  struct sysinfo info {};
  if (sysinfo(&info) != 0) return "unknown";
  return format_bytes(static_cast<std::uint64_t>(info.totalram) * info.mem_unit);
}

// Returns a finding, or the reason why it is unavailable.
template <class Find>
std::string found_by(const Find& find) {
  try {
    return find();
  } catch (const Error& error) {
    return concat("none: ", error.summary());
  }
}

std::string threads_text() {
  const double granted = group_limit();
  std::string text = concat(usable_threads(), " usable of ", std::thread::hardware_concurrency());
  if (std::isfinite(granted))
    text += concat("; control groups grant the time of ", format_real(static_cast<float>(granted)));
  return text;
}

// Measures fork and join: hands one item each to two threads, both of which must start before
// either ends.
std::string fork_join_text() {
  if (usable_threads() < 2) return "not measured: one thread";
  ThreadPool& pool = ThreadPool::shared();
  pool.reserve(1);
  ThreadPool::Caller caller(pool);
  std::atomic<std::int64_t> begun{0};
  const auto meet = [](void* state, std::size_t, std::int64_t begin, std::int64_t end) {
    if (end - begin == 2) return;  // no helper thread was available
    auto& count = *static_cast<std::atomic<std::int64_t>*>(state);
    const std::int64_t both = count.fetch_add(1) / 2 * 2 + 2;
    while (count.load(std::memory_order_relaxed) < both) {
    }
  };
  constexpr int kBatches = 101, kRounds = 100;
  std::vector<double> batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int round = 0; round < kRounds; ++round) caller.for_each(2, 1, 2, meet, &begun);
    batches.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count() /
        kRounds);
  }
  std::nth_element(batches.begin(), batches.begin() + kBatches / 2, batches.end());
  return concat(format_real(static_cast<float>(std::round(batches[kBatches / 2] * 100) / 100)),
                " us");
}

std::string rate_text(double amount, const char* unit) {
  return amount > 0 ? concat(format_count(amount), unit) : "not measured: no AVX2 with FMA";
}

std::string device_peak_text() {
  cuda::device_text();  // before compiling anything
  const profile::DevicePeak peak = profile::measure_device_peak();
  const auto rate = [](double amount, const char* unit) {
    return concat(format_count(amount), unit);
  };
  return concat("f16 ", rate(peak.f16_flops_per_s, "FLOP/s"), ", bf16 ",
                rate(peak.bf16_flops_per_s, "FLOP/s"), ", tf32 ",
                rate(peak.tf32_flops_per_s, "FLOP/s"), ", f32 ",
                rate(peak.f32_flops_per_s, "FLOP/s"), ", ", rate(peak.bytes_per_s, "B/s"));
}

int doctor(OutputFormat format) {
  // Cached for profiles, which compare each step with it.
  const profile::MachinePeak peak = profile::cached_machine_peak(usable_threads(), true);
  const profile::HardwareCounters counters;
  const std::vector<Finding> findings = {
      {"processor", profile::processor_name()},
      {"processor threads", threads_text()},
      {"fork and join of two threads", fork_join_text()},
      {"vector extensions", vector_extensions()},
      {"peak f32 arithmetic", rate_text(peak.flops_per_s, "FLOP/s")},
      {"memory bandwidth", rate_text(peak.bytes_per_s, "B/s")},
      {"cache bandwidth", rate_text(peak.cache_bytes_per_s, "B/s")},
      {"hardware counters",
       counters.problem().empty() ? "cycles, instructions, cache misses" : counters.problem()},
      {"memory", memory_text()},
      {"operators", std::to_string(all_ops().all().size())},
      {"NVIDIA GPU", found_by([] { return cuda::device_text(); })},
      {"CUDA compiler", found_by([] { return driver::cuda_compiler_name(); })},
      {"cuBLASLt", found_by([] { return cuda::blas_text(); })},
      {"cuDNN", found_by([] { return cuda::dnn_text(); })},
      {"NCCL", found_by([] { return cuda::nccl_text(); })},
      {"GPU peak", found_by(device_peak_text)},
      {"host link bandwidth",  // cached for plans that swap
       found_by([] {
         return concat(format_count(profile::cached_link_bytes_per_s(true)), "B/s each way");
       })},
  };
  if (format == OutputFormat::Json) {
    nlohmann::ordered_json json;
    for (const Finding& finding : findings) json[finding.what] = finding.found;
    for (const models::ModelFormat& entry : models::formats())
      json["formats"].push_back(entry.name);
    out() << json.dump(2) << "\n";
    return 0;
  }
  Table table({"item", "status"});
  for (const Finding& finding : findings) table.add({finding.what, finding.found});
  for (const models::ModelFormat& entry : models::formats())
    table.add({"format " + entry.name, entry.summary});
  table.print(out());
  return 0;
}

}  // namespace

void add_doctor(Commands& commands) {
  commands.add("doctor", "Check this machine: processor, GPU, libraries", doctor);
}

}  // namespace tenon::cli
