#pragma once

#include "profile/record.h"

#include <map>
#include <utility>
#include <vector>

namespace tenon::profile {

/// A run with its caller's copies before and after it.
struct WatchedRun {
  struct Copy {
    std::size_t port = 0;
    bool is_input = false;
    std::uint64_t start = 0, kern = 0, end = 0;
  };
  std::vector<Copy> copies;
  RunEvents events;
};

/// Ticks of each step in each run.
class StepSamples {
 public:
  enum class What : std::uint8_t { Step, Output, Input };
  /// and its index
  using Key = std::pair<What, std::uint32_t>;

  /// `asking`: ticks of each step spent on reading the clock.
  void add(const WatchedRun& run, std::uint64_t asking = 0);
  Profile::Spread spread(const Key& key) const;

 private:
  std::map<Key, std::vector<double>> seconds_;
};

/// Fills the profile from the last run's events and the information of the program and its
/// compilation on each step.
void fill_profile(Profile& profile, const CompiledModel& model, const WatchedRun& last,
                  const StepSamples& samples, const std::vector<Datum>& inputs,
                  const driver::CompileRecord* compiled);

}  // namespace tenon::profile
