#pragma once

#include "program/program.h"

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

namespace tenon::inline program {

/// Writes a program to one file: header with version and checksum, tables, code, and page-aligned
/// constants. The file appears only when it is complete.
void write_program(const Program& program, const std::string& path);
/// Writes the same to streams: everything before the constants, and the constants, which start a
/// page. Returns the number of bytes in each.
struct ProgramBytes {
  std::uint64_t head = 0, constants = 0;
};
ProgramBytes write_program(const Program& program, std::ostream& head, std::ostream& constants);

/// Reads and verifies a program. The constants stay in the file and are mapped, so processes share
/// them. Throws Error for a file that is truncated, altered, or of another version; altered
/// constants are detected at their first use.
Program read_program(const std::string& path);
/// Parses a program in memory that `owner` keeps alive.
Program parse_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// True if the bytes are the start of a program file of any version.
bool starts_like_program(std::span<const std::byte> start);

/// Recomputes the checksum of tables and code, so that tests can reach later checks.
void seal_program(std::span<std::byte> bytes);

}  // namespace tenon::inline program
