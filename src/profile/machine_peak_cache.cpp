#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "base/user_folder.h"
#include "profile/device_peak.h"
#include "profile/machine_peak.h"
#include "runtime/cuda/describe.h"
#include "runtime/cuda/transfers.h"

#include <cpuid.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tenon::profile {
namespace {

using PeakJson = nlohmann::json;

std::optional<std::filesystem::path> cache_path() {
  const auto folder = user_cache_folder();
  if (!folder) return std::nullopt;
  return std::filesystem::path(*folder) / "machine_peak.json";
}

PeakJson read_cached() {
  const auto path = cache_path();
  if (!path) return PeakJson::object();
  std::ifstream in(*path);
  if (!in) return PeakJson::object();
  PeakJson json = PeakJson::parse(in, nullptr, false);
  return json.is_object() ? json : PeakJson::object();  // a damaged file is replaced
}

bool read_peak(const PeakJson& kept, const std::string& key, MachinePeak& peak) {
  const auto found = kept.find(key);
  if (found == kept.end() || !found->is_object()) return false;
  const auto number = [&](const char* name, double& value) {
    const auto member = found->find(name);
    if (member == found->end() || !member->is_number()) return false;
    value = member->get<double>();
    return value > 0;
  };
  double cache = 0;
  if (!number("flops_per_s", peak.flops_per_s) || !number("bytes_per_s", peak.bytes_per_s) ||
      !number("cache_bytes_per_s", peak.cache_bytes_per_s) || !number("cache_bytes", cache)) {
    return false;
  }
  peak.cache_bytes = static_cast<std::uint64_t>(cache);
  return true;
}

void keep(const std::string& key, PeakJson peak) {
  const auto path = cache_path();
  if (!path) return;
  PeakJson kept = read_cached();
  kept[key] = std::move(peak);
  std::error_code failed;
  std::filesystem::create_directories(path->parent_path(), failed);
  try {
    NewFile file(path->string());
    file.out() << kept.dump(2) << "\n";
    file.finish();
  } catch (const Error&) {
    // The folder is not writable: measured again next time.
  }
}

}  // namespace

std::string processor_name() {
  std::array<unsigned, 12> words{};
  unsigned most = 0, unused[3];
  if (!__get_cpuid(0x80000000, &most, &unused[0], &unused[1], &unused[2]) || most < 0x80000004)
    return "unknown processor";
  for (unsigned k = 0; k < 3; ++k)
    __get_cpuid(0x80000002 + k, &words[4 * k], &words[4 * k + 1], &words[4 * k + 2],
                &words[4 * k + 3]);
  std::array<char, 49> text{};
  std::memcpy(text.data(), words.data(), 48);
  return std::string(trim(text.data()));
}

MachinePeak cached_machine_peak(int thread_count, bool measures_again) {
  const std::string key =
      concat(processor_name(), ", ", thread_count, thread_count == 1 ? " thread" : " threads");
  MachinePeak peak;
  if (!measures_again && read_peak(read_cached(), key, peak)) return peak;
  peak = measure_machine_peak(thread_count);
  keep(key, {{"flops_per_s", peak.flops_per_s},
             {"bytes_per_s", peak.bytes_per_s},
             {"cache_bytes_per_s", peak.cache_bytes_per_s},
             {"cache_bytes", peak.cache_bytes}});
  return peak;
}

double cached_link_bytes_per_s(bool measures_again) {
  const std::string key = concat(cuda::device_name(), ", the host's memory");
  const PeakJson kept = read_cached();
  const auto found = kept.find(key);
  if (!measures_again && found != kept.end() && found->is_object()) {
    const auto rate = found->find("bytes_per_s");
    if (rate != found->end() && rate->is_number() && rate->get<double>() > 0)
      return rate->get<double>();
  }
  const double measured = cuda::measured_link_bytes_per_s();
  keep(key, {{"bytes_per_s", measured}});
  return measured;
}

}  // namespace tenon::profile
