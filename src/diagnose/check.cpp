#include "diagnose/check.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/element_access.h"

#include <array>
#include <cmath>

namespace tenon::diagnose {

std::optional<ValueFault> fault_in(const Tensor& value, const ValueRule& rule) {
  if (!is_float(value.dtype())) return std::nullopt;
  const std::size_t element_bytes = info(value.dtype()).storage_bytes;
  std::array<double, 1024> some{};
  ValueFault fault;
  const auto size = static_cast<std::size_t>(value.size());
  for (std::size_t at = 0; at < size; at += some.size()) {
    const std::span<double> elements(some.data(), std::min(some.size(), size - at));
    elements::load_reals(value.dtype(), value.bytes().data() + at * element_bytes, elements);
    for (std::size_t k = 0; k < elements.size(); ++k) {
      const double element = elements[k];
      const bool is_bad =
          std::isfinite(element) ? std::fabs(element) > rule.most : !rule.allows_non_finite;
      if (!is_bad || fault.count++ > 0) continue;
      std::vector<std::string> place(value.shape().size());
      auto rest = static_cast<std::int64_t>(at + k);
      for (std::size_t axis = place.size(); axis-- > 0;) {
        place[axis] = std::to_string(rest % value.shape()[axis]);
        rest /= value.shape()[axis];
      }
      fault.what = concat("element [", join(place, ", "), "] is ", format_real(element));
    }
  }
  if (fault.count == 0) return std::nullopt;
  if (fault.count > 1) fault.what += concat(" (", fault.count, " of ", value.size(), " elements)");
  return fault;
}

}  // namespace tenon::diagnose
