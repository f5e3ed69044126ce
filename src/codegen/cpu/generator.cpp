#include "base/error.h"
#include "codegen/compile.h"
#include "codegen/cpu/emit.h"

#include <llvm/Config/llvm-config.h>

namespace tenon::codegen::cpu {

std::string generator_name() { return concat(source_name(), ", LLVM ", LLVM_VERSION_STRING); }

}  // namespace tenon::codegen::cpu
