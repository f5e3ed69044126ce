#include "cli/interrupt.h"

namespace tenon::cli {
namespace {

// Signal handlers can only access globals.
volatile std::sig_atomic_t is_signalled = 0;

}  // namespace

Interrupt::Interrupt() {
  is_signalled = 0;
  struct sigaction action = {};
  action.sa_handler = [](int) { is_signalled = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, &before_);
}

Interrupt::~Interrupt() { sigaction(SIGINT, &before_, nullptr); }

bool Interrupt::is_asked() { return is_signalled != 0; }

}  // namespace tenon::cli
