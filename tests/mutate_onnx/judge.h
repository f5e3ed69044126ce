#pragma once

#include "mutate.h"
#include "seeds.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::testing {

/// What became of a mutant.
struct Verdict {
  enum class Kind : std::uint8_t {
    /// refused when it was read
    NotImported,
    /// refused in every run, by both
    Refused,
    /// ran at least once, with equal results
    Agreed,
    /// runs by definition only, or is too large to try
    NotCompiled,
    Failed,
  };
  Kind kind = Kind::Agreed;
  /// of a failure
  std::string what;
};

struct Mutant {
  /// of the model that it was made of
  std::string name;
  /// of the ONNX file
  std::string bytes;
  /// a line each
  std::vector<std::string> changes;
};

/// The mutant of that number; the same for the same seeds.
Mutant make_mutant(const Seeds& seeds, std::uint64_t number);

/// Imports the model, runs it by definition and compiled on a few sets of inputs, and compares:
/// both must take the same inputs and give the same results. Exceptions other than Error are
/// failures.
Verdict judge(const std::string& model, std::uint64_t number);

}  // namespace tenon::testing
