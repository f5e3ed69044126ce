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
    AtMost,     ///< a <= b
    OneOr,      ///< a is 1 or b
    Broadcast,  ///< equal, or one of them is 1
  };
  Kind kind = Kind::Equal;
  Extent a, b;
  std::string op;     ///< whose rule it is
  std::string where;  ///< "node 'y' (add), operand 'b', axis 0"
  std::string rule;   ///< "N == M"
};

bool holds(ShapeCheck::Kind kind, std::int64_t a, std::int64_t b);

/// Throws an Error that says which rule of which node these values of the symbols break.
void require_checks(const std::vector<ShapeCheck>& checks, std::span<const std::int64_t> symbols);

}  // namespace tenon
