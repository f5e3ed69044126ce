#pragma once

#include "ops/definition/evaluation.h"
#include "tenon/tenon.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tenon::api {

/// Memory of the outputs that the caller passed without memory: valid until the next run, which may
/// write to it as the caller's.
class KeptOutputs {
 public:
  /// Throws Error (Usage) if an output overlaps another tensor. Then releases the memory of the
  /// last run, except outputs of this one.
  void begin(std::span<const tenon_tensor> inputs, std::span<const tenon_tensor> outputs);
  using NameOf = std::function<std::string(std::size_t)>;
  /// Writes the results to the caller's outputs, or returns their addresses. Copies results in
  /// memory of inputs, of `constants` or of other results. Writes no output if one does not fit.
  void end(std::vector<Datum> results, std::span<const tenon_tensor> inputs,
           std::span<tenon_tensor> outputs, std::span<const std::byte> constants,
           const NameOf& name_of);

 private:
  // Outputs of the last run, and of older runs into whose memory it wrote.
  std::vector<Tensor> kept_;
};

}  // namespace tenon::api
