#pragma once

#include "ir/tensor.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What a value may hold.
struct ValueRule {
  bool allows_non_finite = true;
  /// of the magnitude of a finite element
  double most = std::numeric_limits<double>::infinity();
};

/// The first element that breaks a rule.
struct ValueFault {
  /// "element [0, 3] is nan"
  std::string what;
  /// elements that do
  std::int64_t count = 0;
};
/// Integers, truth values and texts break none.
std::optional<ValueFault> fault_in(const Tensor& value, const ValueRule& rule);

}  // namespace tenon
