#pragma once

#include "base/error.h"

namespace tenon {

/// An extent that has a value, but in more terms than anybody wants to compute with. Whoever can do
/// without its expression may go on.
class ExtentTooLarge : public Error {
 public:
  explicit ExtentTooLarge(std::string_view limit) : Error("extent expression is too large") {
    expected("at most ", limit);
  }
};

}  // namespace tenon
