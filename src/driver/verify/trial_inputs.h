#pragma once

#include "ops/evaluation.h"

#include <cstdint>
#include <vector>

namespace tenon {

/// What the elements of trial inputs are like.
enum class TrialKind : std::uint8_t {
  /// floats around 0, integers 0 and 1: fit for indices
  Ordinary,
  /// zeros of both signs, denormals, halves, small integers of both signs
  Quiet,
  /// ordinary, but for a few NaNs and infinities
  Sparse,
  /// ordinary, NaN, infinite, zero and denormal floats; extreme integers
  Edges,
};

struct TrialSettings {
  TrialKind floats = TrialKind::Ordinary;
  TrialKind integers = TrialKind::Ordinary;
  std::uint64_t seed = 1;
};

/// Seeded inputs for a graph; symbols take small values within their range, zero among them.
/// Sequences and optionals are made too; an input of unknown type is a small f32 tensor.
std::vector<Datum> trial_inputs(const Graph& graph, const TrialSettings& settings);

/// A tensor of such elements.
Tensor trial_tensor(DType dtype, const Shape& shape, const TrialSettings& settings);

}  // namespace tenon
