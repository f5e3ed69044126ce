#pragma once

#include "ir/tensor.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tenon::diagnose {

/// Constraint on the elements of a value.
struct ValueRule {
  bool allows_non_finite = true;
  /// largest magnitude of a finite element
  double most = std::numeric_limits<double>::infinity();
};

/// The first element that violates a rule.
struct ValueFault {
  /// "element [0, 3] is nan"
  std::string what;
  /// number of violating elements
  std::int64_t count = 0;
};
/// Integers, booleans and strings never violate a rule.
std::optional<ValueFault> fault_in(const Tensor& value, const ValueRule& rule);

}  // namespace tenon::diagnose
