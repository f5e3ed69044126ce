#include "documents/seeded_weight.h"

#include "base/error.h"

#include <cmath>

namespace tenon::documents {
namespace {

// FNV-1a: a seed that depends on the name alone.
std::uint64_t seed_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return hash;
}

constexpr double kShiftDeviation = 0.1;
constexpr double kLargestInteger = 3;

}  // namespace

Constant seeded_weight(DType dtype, const Shape& shape, std::string_view name,
                       std::int64_t fan_in) {
  TENON_ASSERT(fan_in >= 0, "no fewer than no products");
  if (!is_float(dtype)) return Constant::uniform(dtype, shape, seed_of(name), 0, kLargestInteger);
  const double deviation =
      fan_in == 0 ? kShiftDeviation : std::sqrt(2.0 / static_cast<double>(fan_in));
  return Constant::normal(dtype, shape, seed_of(name), 0, deviation);
}

}  // namespace tenon::documents
