#include "cli/status_line.h"

#include "cli/out.h"

#include <unistd.h>

namespace tenon::cli {

StatusLine::StatusLine() : is_terminal_(isatty(STDERR_FILENO) != 0) {}

void StatusLine::show(const std::string& text) {
  err() << (is_terminal_ ? "\r\x1b[K" : "") << text << (is_terminal_ ? "" : "\n") << std::flush;
  is_shown_ = is_terminal_;
}

void StatusLine::end() {
  if (is_shown_) err() << "\r\x1b[K" << std::flush;
  is_shown_ = false;
}

}  // namespace tenon::cli
