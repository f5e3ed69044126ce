#pragma once

#include "frontends/aitemplate/tables.h"
#include "frontends/aitemplate/vocabulary.h"

#include <cstdint>
#include <vector>

namespace tenon::aitemplate {

/// The conditions that kernels of a convolution are chosen for, all without a kernel yet: every
/// value of the batch, the rest of the image at its greatest.
ExecPath convolution_conditions(const std::vector<DimRow>& image);

/// How many tensors a product's epilogue adds or multiplies after the bias.
std::int64_t source_count(const std::vector<EpilogueStep>& steps);

/// Two sums of four bytes for each group of each image.
std::int64_t group_norm_workspace(const DimRow& batch, std::int64_t groups);

}  // namespace tenon::aitemplate
