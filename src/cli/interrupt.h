#pragma once

#include <csignal>

namespace tenon::cli {

/// Scope in which the first Ctrl-C requests a stop; a second one ends the process.
class Interrupt {
 public:
  Interrupt();
  Interrupt(const Interrupt&) = delete;
  ~Interrupt();
  static bool is_asked();

 private:
  struct sigaction before_ = {};
};

}  // namespace tenon::cli
