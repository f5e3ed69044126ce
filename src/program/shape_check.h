#pragma once

#include "base/extent_relation.h"
#include "program/extent.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline program {

/// A condition on the extents of a run, e.g. from a broadcast. Results are undefined if it fails.
struct ShapeCheck {
  ExtentRelation kind = ExtentRelation::Equal;
  Extent a, b;
  /// Operator that states the condition.
  std::string op;
  /// "node 'y' (add), operand 'b', axis 0"
  std::string where;
  /// "N == M"
  std::string rule;
  /// Range of body steps that require the condition; by default the whole program.
  std::uint32_t begin = 0, end = UINT32_MAX;
};

bool holds(ExtentRelation kind, std::int64_t a, std::int64_t b);

/// Throws an Error that says whose rule these values of the symbols break.
void require_check(const ShapeCheck& check, std::span<const std::int64_t> symbols);

}  // namespace tenon::inline program
