#pragma once

#include "ir/graph.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::testing {

/// A graph to compile.
struct SizeCase {
  /// Kind of the case, for counts: "images", "zoo", "train images", "onnx".
  std::string family;
  /// How to build it again: a model argument, or the layers' text.
  std::string title;
  Graph graph;
};

/// Makes cases by number.
class CaseMaker {
 public:
  /// `folders`: searched for ONNX files, whose extents vary. `filter`: a substring of the family.
  CaseMaker(const std::vector<std::string>& folders, std::uint64_t seed, std::string filter);

  /// Throws Error for sizes that do not fit.
  SizeCase make(std::uint64_t number) const;
  /// Returns the seed of a case's random choices.
  std::uint64_t seed_of(std::uint64_t number) const;

 private:
  std::uint64_t seed_;
  std::vector<std::string> onnx_files_, families_;
};

/// Compiles for random targets, threads and candidates, every eighth seed to machine code. Throws
/// InternalError for a defect, Error for a refusal.
void compile_case(SizeCase sized, std::uint64_t seed);

}  // namespace tenon::testing
