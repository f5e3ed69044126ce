#pragma once

#include "profile/profile.h"

#include <optional>
#include <string>

namespace tenon::profile {

/// The processor's performance counters, for user-mode code of the opening thread.
class HardwareCounters {
 public:
  HardwareCounters();
  HardwareCounters(const HardwareCounters&) = delete;
  ~HardwareCounters();

  /// Empty if all counters work; otherwise lists the missing ones with the reason.
  const std::string& problem() const { return problem_; }
  /// Returns whether cycles are counted; other counters may be missing and are 0.
  bool is_counting() const { return files_[0] >= 0; }
  /// Returns the counts since opening.
  Profile::Counters read() const;

 private:
  int files_[3] = {-1, -1, -1};  // cycles, instructions, cache misses
  std::string problem_;
};

}  // namespace tenon::profile
