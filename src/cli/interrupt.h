#pragma once

#include <csignal>

namespace tenon::cli {

/// While one of these lives, the first Ctrl-C is a wish to stop soon; a second one ends the
/// process.
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
