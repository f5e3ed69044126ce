#pragma once

#include "codegen/cuda/select.h"

#include <optional>
#include <vector>

namespace tenon::codegen::cuda {

/// A convolution in groups of channels: what becomes of one group, as a nest of its own, of tensors
/// that have no other.
struct OneGroup {
  LoopNest nest;
  /// the loop over them, of the nest as it was
  const Statement* groups = nullptr;
};

/// Nothing where no loop, or more than one, moves both factors of a sum.
std::optional<OneGroup> one_group(const LoopNest& nest);

/// Constant weights as group, output, row, column, channel; nothing where there are none of such a
/// convolution, or they lie so. `is_constant`: by buffer of the nest.
std::optional<nests::Packing> grouped_packing(const LoopNest& nest,
                                              const std::vector<bool>& is_constant);

}  // namespace tenon::codegen::cuda
