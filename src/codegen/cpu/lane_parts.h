#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace tenon::codegen::cpu {

/// Returns the number of lanes of a value; 1 for a scalar.
unsigned lane_count(llvm::Value* value);
/// Extracts adjacent lanes, typically one register of a value several registers wide.
llvm::Value* part_of(llvm::IRBuilder<>& ir, llvm::Value* value, unsigned first, unsigned count);
/// Concatenates a power of two of equally wide parts.
llvm::Value* joined(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> parts);

}  // namespace tenon::codegen::cpu
