#include "base/error.h"
#include "embed/loaded_program.h"

// The runtime without the compiler has kernels alone.
std::shared_ptr<tenon::embed::LoadedProgram> tenon::embed::load_with_operators(Program program) {
  throw Error("the program calls operators that are no kernels", ErrorKind::Unsupported)
      .at("program '", program.name, "'")
      .got(program.routine.steps.size(), " steps between its kernels")
      .hint("the full library, libtenon, runs it");
}
