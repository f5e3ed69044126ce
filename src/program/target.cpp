#include "program/target.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace tenon {
namespace {

struct Level {
  std::string_view name;
  std::vector<std::string_view> features;
};

const std::vector<Level>& levels() {
  static const std::vector<Level> list = {
      {"x86-64-v3", {"AVX2", "FMA", "F16C", "BMI", "BMI2", "LZCNT", "MOVBE"}},
      {"x86-64-v4",
       {"AVX2", "FMA", "F16C", "BMI", "BMI2", "LZCNT", "MOVBE", "AVX-512F", "AVX-512BW", "AVX-512CD", "AVX-512DQ",
        "AVX-512VL"}},
  };
  return list;
}

}  // namespace

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
#undef TENON_FEATURE
  return features;
}

void require_target(const Program& program, const std::vector<std::string_view>& features) {
  const auto level = std::ranges::find(levels(), std::string_view(program.target), &Level::name);
  if (level == levels().end()) {
    throw Error("the program is for a processor that this version does not know", ErrorKind::Device)
        .got(program.target)
        .hint("compile the model again with this version");
  }
  std::string missing;
  for (const std::string_view feature : level->features) {
    if (std::ranges::find(features, feature) != features.end()) continue;
    missing += concat(missing.empty() ? "" : ", ", feature);
  }
  if (missing.empty()) return;
  throw Error("the program needs more than this processor has", ErrorKind::Device)
      .expected(missing, " (", program.target, ")")
      .hint("compile it with --cpu=native on this machine");
}

}  // namespace tenon
