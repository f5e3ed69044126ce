#pragma once

#include "codegen/cuda/select.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cuda {

/// A grouped convolution reduced to one group: a nest over tensors that contain only that group.
struct ExtractedGroup {
  LoopNest nest;
  /// The group loop of the original nest.
  const Statement* groups = nullptr;
};

/// Returns nullopt unless exactly one loop moves both factors of the contraction.
std::optional<ExtractedGroup> extract_group(const LoopNest& nest);

/// Packing of constant weights into group, output, row, column, channel order. Returns nullopt
/// unless the nest is a grouped convolution with constant weights in another order. `is_constant`
/// is indexed by buffer of the nest.
std::optional<nests::Packing> grouped_packing(const LoopNest& nest,
                                              const std::vector<bool>& is_constant);

}  // namespace tenon::codegen::cuda
