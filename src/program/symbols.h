#pragma once

#include "program/control.h"

#include <cstdint>
#include <string>

namespace tenon::inline program {

/// A symbolic extent of a program. Its value is known when the buffer that defines it is: an input,
/// or a result.
struct ProgramSymbol {
  std::string name;
  /// Smallest and largest value, inclusive.
  std::int64_t lo = 0, hi = 0;
  /// Buffer and axis that define the value first; kNoBuffer if undefined.
  std::uint32_t buffer = kNoBuffer, axis = 0;
  bool operator==(const ProgramSymbol&) const = default;
};

/// Range of a symbol's values.
struct SymbolGuard {
  /// Index of the symbol.
  std::uint32_t symbol = 0;
  /// Smallest and largest value, inclusive.
  std::int64_t lo = 0, hi = 0;
  bool operator==(const SymbolGuard&) const = default;
};

}  // namespace tenon::inline program
