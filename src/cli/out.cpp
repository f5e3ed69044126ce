#include "cli/out.h"

#include "base/new_file.h"

#include <cerrno>
#include <iostream>
#include <utility>

namespace tenon::cli {
namespace {

thread_local std::ostream *kept_out = nullptr, *kept_err = nullptr;

}  // namespace

std::ostream& out() { return kept_out != nullptr ? *kept_out : std::cout; }
std::ostream& err() { return kept_err != nullptr ? *kept_err : std::cerr; }

void finish_output() {
  // The buffer of a failed stream is written again for the reason of the failure.
  errno = 0;
  const bool is_written = out().rdbuf()->pubsync() == 0 && out().good();
  const int reason = errno != 0 ? errno : EIO;
  out().clear();
  if (is_written) return;
  throw cannot_write("/dev/stdout", reason);
}

KeptOutput::KeptOutput()
    : out_before_(std::exchange(kept_out, &out_)), err_before_(std::exchange(kept_err, &err_)) {}

KeptOutput::~KeptOutput() {
  kept_out = out_before_;
  kept_err = err_before_;
}

}  // namespace tenon::cli
