#pragma once

#include <llvm/IR/IRBuilder.h>

#include <vector>

namespace tenon::codegen::cpu {

/// How many lanes a value has; a number has one.
unsigned lane_count(llvm::Value* value);
/// Some neighbouring lanes: as many as a register has of what is several registers wide.
llvm::Value* part_of(llvm::IRBuilder<>& ir, llvm::Value* value, unsigned first, unsigned count);
/// Parts of equal width side by side again; there are a power of two of them.
llvm::Value* joined(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> parts);

}  // namespace tenon::codegen::cpu
