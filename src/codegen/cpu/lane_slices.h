#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace tenon::codegen::cpu {

/// Returns the number of lanes of a value; 1 for a scalar.
unsigned lane_count(llvm::Value* value);
/// Extracts adjacent lanes, typically one register of a value several registers wide.
llvm::Value* slice_lanes(llvm::IRBuilder<>& ir, llvm::Value* value, unsigned first, unsigned count);
/// Concatenates a power of two of equally wide parts.
llvm::Value* concat_lanes(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> parts);

}  // namespace tenon::codegen::cpu
