#include "codegen/cpu/lane_slices.h"

#include <numeric>

namespace tenon::codegen::cpu {

unsigned lane_count(llvm::Value* value) {
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type == nullptr ? 1 : type->getNumElements();
}

llvm::Value* slice_lanes(llvm::IRBuilder<>& ir, llvm::Value* value, unsigned first,
                         unsigned count) {
  if (first == 0 && lane_count(value) == count) return value;
  std::vector<int> lanes(count);
  std::iota(lanes.begin(), lanes.end(), static_cast<int>(first));
  return ir.CreateShuffleVector(value, lanes);
}

llvm::Value* concat_lanes(llvm::IRBuilder<>& ir, std::vector<llvm::Value*> parts) {
  while (parts.size() > 1) {
    std::vector<llvm::Value*> pairs;
    for (std::size_t k = 0; k < parts.size(); k += 2) {
      std::vector<int> lanes(std::size_t{2} * lane_count(parts[k]));
      std::iota(lanes.begin(), lanes.end(), 0);
      pairs.push_back(ir.CreateShuffleVector(parts[k], parts[k + 1], lanes));
    }
    parts = std::move(pairs);
  }
  return parts.front();
}

}  // namespace tenon::codegen::cpu
