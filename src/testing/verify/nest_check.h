#pragma once

#include "nests/nest_pass.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tenon::testing {

struct NestCheckOptions {
  int trial_count = 2;
  std::uint64_t seed = 1;
  /// Nests with more scalar operations are not run.
  double most_operations = 2e7;
};

/// Result of a comparison.
struct NestCheck {
  /// Empty if equal: "result 0: element 3 is 1 instead of 2".
  std::string difference;
  /// False if the nests are unchanged, too long to run, or fail a check on all inputs.
  bool has_run = false;
};

/// Interprets the nests before and after a pass on random operands and compares their results.
/// Symbols take small values. Rounding differences are accepted, up to those of Winograd's
/// transforms in f32.
NestCheck compare_nests(const nests::NestWork& before, const nests::NestWork& after,
                        const NestCheckOptions& options = {});

}  // namespace tenon::testing
