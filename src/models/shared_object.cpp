#include "models/shared_object.h"

#include "base/error.h"
#include "models/carrier_hash.h"
#include "program/appended.h"

#include <span>

// The runtime as a shared object, embedded at build time, so that it is always available to the
// compiler.
__asm__(
    ".section .rodata\n"
    ".balign 16\n"
    "# " TENON_MODEL_CARRIER_HASH
    "\n"
    "tenon_model_carrier_begin:\n"
    ".incbin \"" TENON_MODEL_CARRIER
    "\"\n"
    "tenon_model_carrier_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" {
extern const std::byte tenon_model_carrier_begin[] __attribute__((visibility("hidden")));
extern const std::byte tenon_model_carrier_end[] __attribute__((visibility("hidden")));
}

namespace tenon::models {

void write_shared_object(const Program& program, const std::string& path,
                         const std::string& constants_path) {
  if (!program.is_kernel_only()) {
    throw Error("a shared object has no operators that are no kernels", ErrorKind::Unsupported)
        .got(program.operators.size() + program.branches.size() + program.loops.size(),
             " such steps")
        .hint("write FILE.tnn, which the full library runs");
  }
  write_appended(program, {tenon_model_carrier_begin, tenon_model_carrier_end}, path,
                 constants_path);
}

}  // namespace tenon::models
