#pragma once

#include "program/program.h"

#include <cstddef>
#include <span>
#include <string>

namespace tenon::inline program {

/// Appends a program to a file such as the runtime's shared object. The system's loader ignores
/// trailing bytes, so no linker is needed. With `constants_path` the constants go into a separate
/// file, which the reader expects in the folder of `path`. Files appear only when they are
/// complete.
void write_appended(const Program& program, std::span<const std::byte> carrier,
                    const std::string& path, const std::string& constants_path = "");

/// Reads a program appended to a file; constants are mapped as by `read_program`. Throws Error if
/// the program is missing, truncated, altered, or of another version.
Program read_appended(const std::string& path);

}  // namespace tenon::inline program
