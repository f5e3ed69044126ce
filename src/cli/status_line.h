#pragma once

#include <string>

namespace tenon::cli {

/// A line on standard error that tells of work in progress. A terminal shows one line, rewritten;
/// elsewhere every text is a line of its own.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine() { end(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool is_terminal() const { return is_terminal_; }
  void show(const std::string& text);
  /// Removes the line from a terminal.
  void end();

 private:
  bool is_terminal_, is_shown_ = false;
};

}  // namespace tenon::cli
