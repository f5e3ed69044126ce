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

  /// Empty where they count; why they do not otherwise.
  const std::string& problem() const { return problem_; }
  /// Counted since they were opened.
  Profile::Counters read() const;

 private:
  int group_ = -1, members_[2] = {-1, -1};
  std::string problem_;
};

}  // namespace tenon
