#pragma once

#include "program/program.h"

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>

namespace tenon {

/// Writes a program as one file: a header with version and checksum, the tables, the code, and the
/// constants on a page of their own. The file appears only when it is complete.
void write_program(const Program& program, const std::string& path);
/// The same into streams: all up to the constants, and the constants, which begin a page. Gives how
/// many bytes each got.
struct ProgramBytes {
  std::uint64_t head = 0, constants = 0;
};
ProgramBytes write_program(const Program& program, std::ostream& head, std::ostream& constants);

/// Reads one and verifies it. The constants stay in the file and are mapped: processes that run the
/// same one share them. Throws Error for a file that is cut short, altered, or of another version;
/// altered constants are found when a model first runs.
Program read_program(const std::string& path);
/// The same from memory, which `owner` keeps.
Program parse_program(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// Whether the bytes that a file starts with are a program's, of this version or another.
bool starts_like_program(std::span<const std::byte> start);

/// Makes the checksum of tables and code right, so that tests reach what lies behind it.
void seal_program(std::span<std::byte> bytes);

}  // namespace tenon
