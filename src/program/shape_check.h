#pragma once

#include "program/extent.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon {

/// What must hold of the extents that a run is given, or its results mean nothing.
struct ShapeCheck {
  enum class Kind : std::uint8_t {
    Equal,
    /// a <= b
    AtMost,
    /// a is 1 or b
    OneOr,
    /// equal, or one of them is 1
    Broadcast,
  };
  Kind kind = Kind::Equal;
  Extent a, b;
  /// whose rule it is
  std::string op;
  /// "node 'y' (add), operand 'b', axis 0"
  std::string where;
  /// "N == M"
  std::string rule;
  /// The steps of a body that ask for it; else all of the program does.
  std::uint32_t begin = 0, end = UINT32_MAX;
};

bool holds(ShapeCheck::Kind kind, std::int64_t a, std::int64_t b);

/// Throws an Error that says whose rule these values of the symbols break.
void require_check(const ShapeCheck& check, std::span<const std::int64_t> symbols);

}  // namespace tenon
