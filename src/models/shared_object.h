#pragma once

#include "program/program.h"

#include <string>

namespace tenon::models {

/// Writes a program as a shared object: the runtime with its C interface, followed by the program
/// (`program/appended.h`). Needs no linker. Throws Error (Unsupported) for a program that needs
/// more than the runtime.
void write_shared_object(const Program& program, const std::string& path,
                         const std::string& constants_path = "");

}  // namespace tenon::models
