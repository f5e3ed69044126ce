#pragma once

#include <ostream>
#include <sstream>
#include <string>

namespace tenon::cli {

/// Streams for results and messages of commands: standard output and standard error, unless this
/// thread captures them.
std::ostream& out();
std::ostream& err();

/// Flushes the output; throws Error if any of it could not be written.
void finish_output();

/// Captures the output of commands on this thread, for callers of commands as functions.
class KeptOutput {
 public:
  KeptOutput();
  KeptOutput(const KeptOutput&) = delete;
  ~KeptOutput();

  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }

 private:
  std::ostringstream out_, err_;
  std::ostream *out_before_, *err_before_;
};

}  // namespace tenon::cli
