#pragma once

#include "program/program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A program as text, but for its code and constants: symbols, checks, buffers, kernels, steps.
std::string to_string(const Program& program);
/// Reads it back; what it gives prints the same. Whether it holds together is `verify`'s to say.
/// Throws Error with line and column.
Program parse_program_text(std::string_view text, std::string_view source_name = "text");

/// A program's arena alone: the buffers in it by first step, with the place and the steps they are
/// alive in.
struct ArenaText {
  struct Line {
    std::uint32_t first_step = 0, last_step = 0;
    std::uint64_t begin = 0, end = 0;
    std::string name;
    bool operator==(const Line&) const = default;
  };
  /// nothing where shapes decide
  std::optional<std::uint64_t> bytes;
  std::vector<Line> lines;
  bool operator==(const ArenaText&) const = default;
};
ArenaText arena_text(const Program& program);
std::string to_string(const ArenaText& plan);
ArenaText parse_plan_text(std::string_view text, std::string_view source_name = "text");
inline std::string plan_text(const Program& program) { return to_string(arena_text(program)); }

}  // namespace tenon
