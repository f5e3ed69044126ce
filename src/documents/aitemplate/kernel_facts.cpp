#include "documents/aitemplate/kernel_facts.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::documents::aitemplate {

ExecPath convolution_conditions(const std::vector<DimRow>& image) {
  ExecPath path;
  if (image.size() != 4) return path;
  for (const std::int64_t batch : image[0].values) {
    const std::string condition =
        concat("NI == ", batch, " && HI == ", image[1].greatest(),
               " && WI == ", image[2].greatest(), " && CI == ", image[3].greatest());
    const bool is_new = path.entries.empty() || path.entries.back().condition != condition;
    if (is_new) path.entries.push_back({condition, PythonValue::string("")});
  }
  return path;
}

std::int64_t source_count(const std::vector<EpilogueStep>& steps) {
  return std::count_if(steps.begin(), steps.end(), [](EpilogueStep step) {
    return step == EpilogueStep::Add || step == EpilogueStep::Mul;
  });
}

std::int64_t group_norm_workspace(const DimRow& batch, std::int64_t groups) {
  std::int64_t bytes = 0;
  const bool is_too_large = __builtin_mul_overflow(8 * batch.greatest(), groups, &bytes);
  return is_too_large ? kMaxExtent : bytes;
}

}  // namespace tenon::documents::aitemplate
