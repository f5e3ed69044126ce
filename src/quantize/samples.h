#pragma once

#include "ops/definition/evaluation.h"

#include <string>
#include <vector>

namespace tenon::quantize {

/// Calibration inputs of a model, read one sample at a time.
class CalibrationSamples {
 public:
  /// `@DIR`: each folder and `.npz` file in it is a sample, or the folder itself if it has neither;
  /// `random:N` generates N samples. Throws Error (Usage) for other text and for an empty folder.
  CalibrationSamples(const Graph& graph, const std::string& text);

  std::size_t size() const { return names_.size(); }
  const std::string& name(std::size_t k) const { return names_[k]; }
  /// Reads the inputs in graph order. Throws Error, naming the sample, for a wrong shape or type
  /// and for non-finite elements.
  std::vector<Datum> read(std::size_t k) const;

 private:
  const Graph& graph_;
  std::vector<std::string> names_;
  bool is_random_ = false;
};

}  // namespace tenon::quantize
