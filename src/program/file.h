#pragma once

#include <string>

#include "program/program.h"

namespace tenon {

/// Writes a program as one file: a header with version and checksum, the tables, the code, and the
/// constants on a page of their own. The file appears only when it is complete.
void write_program(const Program& program, const std::string& path);

/// Reads one. The constants stay in the file and are mapped: processes that run the same one share
/// them. Throws Error for a file that is cut short, altered, or of another version.
Program read_program(const std::string& path);

/// Whether the file starts as a program does.
bool is_program_file(const std::string& path);

/// Throws Error of kind Device, naming what is missing, if this processor cannot run the program.
void require_target(const Program& program);

}  // namespace tenon
