#include "testing/compare.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <cmath>
#include <complex>

namespace tenon::testing {
namespace {

void compare_strings(const Tensor& actual, const Tensor& expected, Comparison& result) {
  for (std::size_t k = 0; k < expected.strings().size(); ++k) {
    if (actual.strings()[k] == expected.strings()[k]) continue;
    if (result.differing++ > 0) continue;
    result.what = concat("element ", k, " is ", quote(actual.strings()[k]), " instead of ",
                         quote(expected.strings()[k]));
  }
}

std::string text_of(std::complex<double> value, DType dtype) {
  if (!is_complex(dtype)) return format_real(value.real());
  return concat("(", format_real(value.real()), ", ", format_real(value.imag()), ")");
}

bool are_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void compare_numbers(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                     Comparison& result) {
  double magnitude = 0;
  for (std::int64_t k = 0; k < expected.size(); ++k) {
    const std::complex<double> a = actual.complex_at(k), e = expected.complex_at(k);
    if (std::isfinite(std::abs(e))) magnitude = std::max(magnitude, std::abs(e));
    if (are_same(a.real(), e.real()) && are_same(a.imag(), e.imag())) continue;
    if (std::isnan(a.real()) && std::isnan(e.real())) continue;
    const double error = std::abs(a - e);
    if (std::isfinite(error)) result.largest_error = std::max(result.largest_error, error);
    if (error <= tolerance.absolute + tolerance.relative * std::abs(e) && std::isfinite(error))
      continue;
    if (result.differing++ > 0) continue;
    result.what = concat("element ", k, " is ", text_of(a, actual.dtype()), " instead of ",
                         text_of(e, expected.dtype()));
  }
  if (magnitude > 0) result.largest_relative = result.largest_error / magnitude;
}

Comparison different(std::string what) {
  Comparison result;
  result.is_equal = false;
  result.what = std::move(what);
  return result;
}

}  // namespace

Comparison compare(const Datum& actual, const Datum& expected, const Tolerance& tolerance) {
  if (actual.kind() != expected.kind()) {
    return different(concat("type ", actual.type(), " instead of ", expected.type()));
  }
  if (!actual.is_tensor()) {
    if (actual.items().size() != expected.items().size()) {
      return different(
          concat(actual.items().size(), " items instead of ", expected.items().size()));
    }
    for (std::size_t k = 0; k < actual.items().size(); ++k) {
      Comparison item = compare(actual.items()[k], expected.items()[k], tolerance);
      if (item.is_equal) continue;
      item.what = concat("item ", k, ": ", item.what);
      return item;
    }
    return {};
  }
  const Tensor &a = actual.tensor(), &e = expected.tensor();
  if (a.dtype() != e.dtype() || a.shape() != e.shape()) {
    return different(concat("type ", a.type(), " instead of ", e.type()));
  }
  Comparison result;
  if (a.dtype() == DType::String) {
    compare_strings(a, e, result);
  } else {
    compare_numbers(a, e, tolerance, result);
  }
  result.is_equal = result.differing == 0;
  return result;
}

}  // namespace tenon::testing
