#pragma once

#include "base/error.h"

namespace tenon {

/// The user asked to stop. The command line ends with kExitCode, as if the signal had ended it.
class Interrupted : public Error {
 public:
  static constexpr int kExitCode = 130;
  Interrupted() : Error("interrupted") {}
};

}  // namespace tenon
