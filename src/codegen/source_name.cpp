#include "base/error.h"
#include "codegen/compile.h"
#include "codegen/source_hash.h"  // made by cmake/source_hash.cmake

namespace tenon::codegen {

std::string source_name() { return concat("tenon ", kSourceHash); }

}  // namespace tenon::codegen
