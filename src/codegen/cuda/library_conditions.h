#pragma once

#include "codegen/cuda/library_match.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

// Conditions on a contraction and its epilogue that all library calls share.

LibraryMatch refuse(std::string why);

/// Returns the epilogue if it is a single store, as an expression of the sum's local alone.
std::optional<Statement> only_store(const nests::Contraction& contraction);

/// Channel granularity of tensor cores: eight 16-bit elements; with fewer channels libraries fall
/// back to slow kernels. In f32 their kernels for few channels are faster than padding.
inline std::int64_t channel_granularity(const std::string& dtype) { return dtype == "f32" ? 1 : 8; }

bool is_zero(const Scalar& number);
/// True if out-of-bounds reads of the load yield zero, or cannot occur.
bool is_zero_outside(const Scalar& load);
bool starts_from_zero(const Statement& define);
bool starts_at_zero(const std::vector<Scalar>& indices, std::size_t rank);

/// Checks the types and records them in the call. Returns the reason for a refusal, else "".
std::string note_types(const LoopNest& nest, const nests::Contraction& contraction,
                       const Statement& store, LibraryCall& call);

}  // namespace tenon::codegen::cuda
