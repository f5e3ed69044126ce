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
  double most = std::numeric_limits<double>::infinity();  ///< of the magnitude of a finite element
};

/// The first element that breaks a rule.
struct ValueFault {
  std::string what;        ///< "element [0, 3] is nan"
  std::int64_t count = 0;  ///< elements that do
};
/// Integers, truth values and texts break none.
std::optional<ValueFault> fault_in(const Tensor& value, const ValueRule& rule);

}  // namespace tenon
