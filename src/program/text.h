#pragma once

#include "program/program.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline program {

/// Returns a program's text form: symbols, checks, buffers, kernels, steps; without code and
/// constants.
std::string to_string(const Program& program);
/// Returns the line of a state: "state input 1 output 1 starts with zeros in_place".
std::string to_string(const Program::State& state);
/// Parses the text form; printing the result yields the same text. `verify` checks consistency.
/// Throws Error with line and column.
Program parse_program_text(std::string_view text, std::string_view source_name = "text");

/// Text form of the arena alone: its buffers by first step, with offsets and live ranges.
struct ArenaText {
  struct Line {
    std::uint32_t first_step = 0, last_step = 0;
    std::uint64_t begin = 0, end = 0;
    std::string name;
    bool operator==(const Line&) const = default;
  };
  /// Nullopt if shapes decide.
  std::optional<std::uint64_t> bytes;
  std::vector<Line> lines;
  bool operator==(const ArenaText&) const = default;
};
ArenaText arena_text(const Program& program);
std::string to_string(const ArenaText& plan);
ArenaText parse_plan_text(std::string_view text, std::string_view source_name = "text");
inline std::string plan_text(const Program& program) { return to_string(arena_text(program)); }

}  // namespace tenon::inline program
