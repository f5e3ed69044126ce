#pragma once

#include "ops/evaluation.h"

#include <string>
#include <vector>

namespace tenon {

/// Inputs that a model is calibrated with, read one sample at a time.
class CalibrationSamples {
 public:
  /// `@DIR`: each folder and `.npz` file in it is a sample, or, where it has neither, itself;
  /// `random:N` makes so many. Throws Error (Usage) for other texts and where there is none.
  CalibrationSamples(const Graph& graph, const std::string& text);

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t k) const { return names_[k]; }
  /// The inputs in the graph's order. Throws Error, naming the sample, for a wrong shape or type
  /// and for what is not finite.
  std::vector<Datum> read(std::size_t k) const;

 private:
  const Graph& graph_;
  std::vector<std::string> names_;
  bool is_random_ = false;
};

}  // namespace tenon
