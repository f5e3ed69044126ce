#pragma once

#include "documents/aitemplate/tables.h"
#include "documents/aitemplate/vocabulary.h"

#include <cstdint>
#include <vector>

namespace tenon::documents::aitemplate {

/// Returns the kernel conditions of a convolution without kernels: every batch value, the rest of
/// the image at its greatest extents.
ExecPath convolution_conditions(const std::vector<DimRow>& image);

/// Returns the number of tensors that a GEMM's epilogue adds or multiplies after the bias.
std::int64_t source_count(const std::vector<EpilogueStep>& steps);

/// Two 4-byte sums per group and image.
std::int64_t group_norm_workspace(const DimRow& batch, std::int64_t groups);

}  // namespace tenon::documents::aitemplate
