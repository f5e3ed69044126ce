#include "numbers.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/constant.h"

#include <cmath>

namespace tenon::testing {

Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return {1e-10, 1e-12};
    case DType::C128:
      return {1e-10, 1e-12};
    case DType::F32:
      return {1e-5, 1e-6};
    case DType::C64:
      return {1e-5, 1e-6};
    case DType::F16:
      return {2e-3, 2e-3};
    case DType::BF16:
      return {1.6e-2, 1e-2};
    default:
      return {0, 0};
  }
}

std::string difference(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return concat("type ", actual.type(), " instead of ", expected.type());
  }
  if (actual.dtype() == DType::String) {
    return identical(actual, expected) ? "" : "the strings differ";
  }
  for (std::int64_t k = 0; k < actual.size(); ++k) {
    if (is_integer(actual.dtype()) || actual.dtype() == DType::Bool) {
      if (actual.integer_at(k) == expected.integer_at(k)) continue;
      return concat("element ", k, " is ", actual.integer_at(k), " instead of ",
                    expected.integer_at(k));
    }
    const std::complex<double> a = actual.complex_at(k), b = expected.complex_at(k);
    if (std::isnan(a.real()) && std::isnan(b.real())) continue;
    if (a == b) continue;
    if (std::abs(a - b) <= tolerance.absolute + tolerance.relative * std::abs(b)) continue;
    return concat("element ", k, " is ", format_real(a.real()), " instead of ",
                  format_real(b.real()));
  }
  return "";
}

Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed, double low, double high) {
  return Constant::uniform(dtype, shape, seed, low, high).materialise();
}

}  // namespace tenon::testing
