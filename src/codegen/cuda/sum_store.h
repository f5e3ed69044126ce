#pragma once

#include "codegen/cuda/library_match.h"

#include <optional>
#include <string>
#include <vector>

namespace tenon::codegen::cuda {

// What all calls of libraries ask of a sum of products and of what becomes of it.

LibraryMatch refuse(std::string why);

/// What follows the sum, if that is one store: its value told from the sum's local alone.
std::optional<Statement> only_store(const nests::Contraction& sum);

/// Tensor cores take eight narrow numbers at once; with fewer channels a library has slow kernels
/// alone. In f32 its kernels for a few channels were faster than those for padded ones.
inline std::int64_t channels_together(const std::string& dtype) { return dtype == "f32" ? 1 : 8; }

bool is_zero(const Scalar& number);
/// Whether a load gives zeros where it leaves its tensor, or never does.
bool is_zero_outside(const Scalar& load);
bool starts_from_zero(const Statement& define);
bool starts_at_zero(const std::vector<Scalar>& indices, std::size_t rank);

/// What is asked of types, and noted of them; why they do not suit, else nothing.
std::string note_types(const LoopNest& nest, const nests::Contraction& sum, const Statement& store,
                       LibraryCall& call);

}  // namespace tenon::codegen::cuda
