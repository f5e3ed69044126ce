#pragma once

#include <ostream>
#include <sstream>
#include <string>

namespace tenon::cli {

/// Where commands print their results and where what they say beside them: standard output and
/// standard error, unless this thread keeps what is printed.
std::ostream& out();
std::ostream& err();

/// While it lives, what commands of this thread print is kept, for whoever called them as a
/// function.
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
