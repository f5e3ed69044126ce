#pragma once

#include "profile/profile.h"

#include <optional>
#include <string>

namespace tenon {

/// The processor's counters, of the thread that opens them and only while it runs the user's code.
class HardwareCounters {
 public:
  HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  ~HardwareCounters();

  /// Empty where all of them count; else which do not, and why.
  const std::string& problem() const { return problem_; }
  /// Whether cycles are counted; others may be missing, and are 0.
  bool is_counting() const { return files_[0] >= 0; }
  /// Counted since they were opened.
  Profile::Counters read() const;

 private:
  int files_[3] = {-1, -1, -1};  // cycles, instructions, cache misses
  std::string problem_;
};

}  // namespace tenon
