#pragma once

#include "base/error.h"

namespace tenon::inline ir {

/// Thrown for an extent whose expression exceeds the term limit. The extent has a value; a caller
/// that does not need the expression may continue.
class ExtentTooLarge : public Error {
 public:
  explicit ExtentTooLarge(std::string_view limit) : Error("extent expression is too large") {
    expected("at most ", limit);
  }
};

}  // namespace tenon::inline ir
