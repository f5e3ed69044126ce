#pragma once

#include "driver/profile/record.h"

#include <map>
#include <utility>
#include <vector>

namespace tenon {

/// A run with what its caller did before and behind it.
struct WatchedRun {
  struct Copy {
    std::size_t port = 0;
    bool is_input = false;
    std::uint64_t start = 0, kern = 0, end = 0;
  };
  std::vector<Copy> copies;
  RunEvents events;
};

/// What each step took in each run, in ticks.
class StepSamples {
 public:
  enum class What : std::uint8_t { Step, Output, Input };
  /// and which
  using Key = std::pair<What, std::uint32_t>;

  /// `asking` is how many ticks of each step went into asking the clock.
  void add(const WatchedRun& run, std::uint64_t asking = 0);
  Profile::Spread spread(const Key& key) const;

 private:
  std::map<Key, std::vector<double>> seconds_;
};

/// Puts down what was seen of the last run, with what the program and its compilation say about
/// each step.
void fill_profile(Profile& profile, const CompiledModel& model, const WatchedRun& last,
                  const StepSamples& samples, const std::vector<Datum>& inputs,
                  const CompileRecord* compiled);

}  // namespace tenon
