#include "base/error.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/source_hash.h"  // made by cmake/source_hash.cmake

#include <llvm/Config/llvm-config.h>

namespace tenon::codegen::cpu {

std::string generator_name() {
  return concat("tenon ", kSourceHash, ", LLVM ", LLVM_VERSION_STRING);
}

}  // namespace tenon::codegen::cpu
