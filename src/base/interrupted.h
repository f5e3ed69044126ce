#pragma once

#include "base/error.h"

namespace tenon::inline base {

/// Interruption by the user. The command line exits with kExitCode, like a process ended by SIGINT.
class Interrupted : public Error {
 public:
  static constexpr int kExitCode = 130;
  Interrupted() : Error("interrupted") {}
};

}  // namespace tenon::inline base
