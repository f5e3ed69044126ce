#include "program/target.h"

#include "base/error.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace tenon::inline program {
namespace {

struct IsaLevel {
  std::string_view name;
  std::vector<std::string_view> features;
};

// Extensions that follow a level and "+".
const std::vector<IsaLevel>& extensions() {
  static const std::vector<IsaLevel> list = {
      {"avx512-bf16", {"AVX-512-BF16"}},
      {"amx-bf16", {"AVX-512-BF16", "AMX-BF16"}},
      {"amx-int8", {"AVX-512VNNI", "AMX-INT8"}},
      {"avx512-vnni", {"AVX-512VNNI"}},
      {"avx-vnni", {"AVX-VNNI"}},
  };
  return list;
}

struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};
Registers cpuid(unsigned leaf, unsigned part) {
  Registers r;
  if (__get_cpuid_count(leaf, part, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

// Linux grants AMX tile state per process on request, for all of its threads.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool is_allowed = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return is_allowed;
}

const std::vector<IsaLevel>& levels() {
  static const std::vector<IsaLevel> list = {
      {"x86-64-v3", {"AVX2", "FMA", "F16C", "BMI", "BMI2", "LZCNT", "MOVBE"}},
      {"x86-64-v4",
       {"AVX2", "FMA", "F16C", "BMI", "BMI2", "LZCNT", "MOVBE", "AVX-512F", "AVX-512BW",
        "AVX-512CD", "AVX-512DQ", "AVX-512VL"}},
  };
  return list;
}

}  // namespace

std::string_view gpu_architecture(const Program& program) {
  constexpr std::string_view kPrefix = "cuda:";
  const std::string_view target = program.target;
  return target.starts_with(kPrefix) ? target.substr(kPrefix.size()) : std::string_view();
}

std::vector<std::string_view> processor_features() {
  std::vector<std::string_view> features;
#define TENON_FEATURE(id, name) \
  if (__builtin_cpu_supports(id)) features.emplace_back(name)
  TENON_FEATURE("avx2", "AVX2");
  TENON_FEATURE("fma", "FMA");
  TENON_FEATURE("f16c", "F16C");
  TENON_FEATURE("bmi", "BMI");
  TENON_FEATURE("bmi2", "BMI2");
  TENON_FEATURE("lzcnt", "LZCNT");
  TENON_FEATURE("movbe", "MOVBE");
  TENON_FEATURE("avx512f", "AVX-512F");
  TENON_FEATURE("avx512bw", "AVX-512BW");
  TENON_FEATURE("avx512cd", "AVX-512CD");
  TENON_FEATURE("avx512dq", "AVX-512DQ");
  TENON_FEATURE("avx512vl", "AVX-512VL");
  TENON_FEATURE("avx512vnni", "AVX-512VNNI");
#undef TENON_FEATURE
  if ((cpuid(7, 1).eax & (1U << 4)) != 0) features.emplace_back("AVX-VNNI");
  if ((cpuid(7, 1).eax & (1U << 5)) != 0) features.emplace_back("AVX-512-BF16");
  constexpr unsigned kTiles = 1U << 24, kTilesOfBf16 = 1U << 22, kTilesOfBytes = 1U << 25;
  const unsigned tiles = cpuid(7, 0).edx;
  if ((tiles & kTiles) != 0 && may_use_tiles()) {
    if ((tiles & kTilesOfBf16) != 0) features.emplace_back("AMX-BF16");
    if ((tiles & kTilesOfBytes) != 0) features.emplace_back("AMX-INT8");
  }
  return features;
}

void require_target(const Program& program, const std::vector<std::string_view>& features) {
  // The level, then its extensions.
  std::vector<std::string_view> needed;
  std::string_view left = program.target;
  for (bool is_level = true; is_level || !left.empty(); is_level = false) {
    const std::size_t plus = std::min(left.find('+'), left.size());
    const std::vector<IsaLevel>& known = is_level ? levels() : extensions();
    const auto found = std::ranges::find(known, left.substr(0, plus), &IsaLevel::name);
    if (found == known.end()) {
      throw Error("the program is for a processor that this version does not know",
                  ErrorKind::Device)
          .got(program.target)
          .hint("compile the model again with this version");
    }
    needed.insert(needed.end(), found->features.begin(), found->features.end());
    left = left.substr(std::min(plus + 1, left.size()));
  }
  std::string missing;
  for (const std::string_view feature : needed) {
    if (std::ranges::find(features, feature) != features.end()) continue;
    missing += concat(missing.empty() ? "" : ", ", feature);
  }
  if (missing.empty()) return;
  throw Error("the program needs more than this processor has", ErrorKind::Device)
      .expected(missing, " (", program.target, ")")
      .hint("compile it with --cpu=native on this machine");
}

}  // namespace tenon::inline program
