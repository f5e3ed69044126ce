#include "base/error.h"
#include "embed/loaded_program.h"
#include "program/totals.h"

// The runtime library executes kernel-only programs.
std::shared_ptr<tenon::embed::LoadedProgram> tenon::embed::load_with_operators(Program program) {
  throw Error("the program calls operators that are no kernels", ErrorKind::Unsupported)
      .at("program '", program.name, "'")
      .got(totals_of(program).operator_steps, " such steps, and control flow")
      .hint("the full library, libtenon, runs it");
}
