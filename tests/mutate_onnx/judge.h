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
    NotImported,  ///< refused when it was read
    Refused,      ///< refused in every run, by both
    Agreed,       ///< ran at least once, with equal results
    NotCompiled,  ///< runs by definition only, or is too large to try
    Failed,
  };
  Kind kind = Kind::Agreed;
  std::string what;  ///< of a failure
};

struct Mutant {
  std::string name;                  ///< of the model that it was made of
  std::string bytes;                 ///< of the ONNX file
  std::vector<std::string> changes;  ///< a line each
};

/// The mutant of that number; the same for the same seeds.
Mutant make_mutant(const Seeds& seeds, std::uint64_t number);

/// Imports the model, runs it by definition and compiled on a few sets of inputs, and compares:
/// both must take the same inputs and give the same results. Exceptions other than Error are
/// failures.
Verdict judge(const std::string& model, std::uint64_t number);

}  // namespace tenon::testing
