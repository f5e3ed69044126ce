#pragma once

#include "mutate.h"
#include "seeds.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::testing {

/// Result of a mutant.
struct Verdict {
  enum class Kind : std::uint8_t {
    /// refused by the importer
    NotImported,
    /// refused in every run, by both
    Refused,
    /// ran at least once, with equal results
    Agreed,
    /// runs in the reference only, or is too large to try
    NotCompiled,
    Failed,
  };
  Kind kind = Kind::Agreed;
  /// description of a failure
  std::string what;
};

struct Mutant {
  /// name of the original model
  std::string name;
  /// of the ONNX file
  std::string bytes;
  /// a line each
  std::vector<std::string> changes;
};

/// Returns the mutant of that number; deterministic for equal seeds.
Mutant make_mutant(const Seeds& seeds, std::uint64_t number);

/// Imports the model, runs it in the reference and compiled on a few sets of inputs, and compares:
/// both must accept the same inputs and give the same results. Exceptions other than Error are
/// failures.
Verdict judge(const std::string& model, std::uint64_t number);

}  // namespace tenon::testing
