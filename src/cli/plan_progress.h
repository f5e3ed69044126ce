#pragma once

#include "cli/interrupt.h"
#include "cli/status_line.h"
#include "memory/search.h"

#include <chrono>
#include <string>

namespace tenon::cli {

/// Reports the progress of plan searches on standard error, and ends them at Ctrl-C.
class PlanProgress {
 public:
  /// Names the budget of the following searches, and the time of a plan without a budget.
  void begin(std::string name, double base_seconds);
  /// For `SearchOptions::goes_on`.
  bool goes_on(const memory::SearchProgress& progress);
  /// Tells a result for which the user would wait otherwise.
  void tell(const std::string& result);
  /// Removes the line. Returns whether the user asked for a stop.
  bool end();

 private:
  using Clock = std::chrono::steady_clock;

  Interrupt interrupt_;
  StatusLine line_;
  std::string name_;
  double base_seconds_ = 1;
  Clock::time_point shown_ = Clock::now();
};

}  // namespace tenon::cli
