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

bool starts_from_zero(const Statement& define);
bool starts_at_zero(const std::vector<Scalar>& indices, std::size_t rank);

/// What is asked of types, and noted of them; why they do not suit, else nothing.
std::string note_types(const LoopNest& nest, const nests::Contraction& sum, const Statement& store,
                       LibraryCall& call);

}  // namespace tenon::codegen::cuda
