#pragma once

#include "program/program.h"

#include <cstddef>
#include <span>
#include <string>

namespace tenon {

/// Writes a program behind a file's bytes, as behind the runtime's shared object: the loader of the
/// system does not look there, so that no linker is needed. Its constants go into a file of their
/// own where `constants_path` names one, which is then looked for in the folder of `path`. Files
/// appear only when they are complete.
void write_appended(const Program& program, std::span<const std::byte> carrier,
                    const std::string& path, const std::string& constants_path = "");

/// Reads the program behind the end of such a file, mapped as by `read_program`. Throws Error where
/// there is none, where it is cut short, altered, or of another version.
Program read_appended(const std::string& path);

}  // namespace tenon
