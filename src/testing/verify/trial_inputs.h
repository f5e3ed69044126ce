#pragma once

#include "ops/definition/evaluation.h"

#include <cstdint>
#include <vector>

namespace tenon::testing {

/// Distribution of the elements of trial inputs.
enum class TrialKind : std::uint8_t {
  /// floats around 0, integers 0 and 1: valid as indices
  Ordinary,
  /// zeros of both signs, denormals, halves, small integers of both signs
  Quiet,
  /// ordinary, with a few NaNs and infinities
  Sparse,
  /// ordinary, NaN, infinite, zero and denormal floats; extreme integers
  Edges,
};

struct TrialSettings {
  TrialKind floats = TrialKind::Ordinary;
  TrialKind integers = TrialKind::Ordinary;
  std::uint64_t seed = 1;
};

/// Returns seeded inputs for a graph; symbols take small values within their range, including zero.
/// Supports sequences and optionals; an input of unknown type is a small f32 tensor.
std::vector<Datum> trial_inputs(const Graph& graph, const TrialSettings& settings);

/// Returns a tensor of such elements.
Tensor trial_tensor(DType dtype, const Shape& shape, const TrialSettings& settings);

}  // namespace tenon::testing
