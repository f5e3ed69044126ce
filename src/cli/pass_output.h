#pragma once

#include "driver/compile.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// Services of all passes of a compilation.
struct StageOptions {
  std::string stop_after, dump_dir;
  std::vector<std::string> without, print_after;
  bool print_after_all = false, time_passes = false, verify_each = false;
};

/// Prints times and changes of passes on stderr; `unit`: "nodes" or "nests".
void print_table(const std::vector<driver::PassReport>& reports, const std::string& unit);

/// Replaces long constants by an ellipsis, which parsers reject as elements.
std::string without_weights(const std::string& text);

/// Prints stages of a compilation and writes them to files, as its options ask.
class StageOutput {
 public:
  explicit StageOutput(const StageOptions& options);
  /// Returns whether the options ask for stages.
  bool is_wanted() const;
  void take(const driver::StageText& stage);

 private:
  const StageOptions& options_;
  std::size_t count_ = 0;
};

}  // namespace tenon::cli
