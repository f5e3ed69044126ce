#pragma once

#include "program/extent.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// In place of a buffer's number: an operand that is missing, a result that nobody wants.
inline constexpr std::uint32_t kNoBuffer = 0xffffffff;

/// An attribute of an operator, as plain data.
struct ProgramAttribute {
  /// In the order of the IR's attributes (`ir/attribute.h`).
  enum class Kind : std::uint8_t {
    Bool,
    Integer,
    Real,
    Text,
    Element,
    Integers,
    Reals,
    Texts,
    Constant,
    Type,
  };
  std::string name;
  Kind kind = Kind::Integer;
  /// Bool, Integer, Integers; the shape of a Constant
  std::vector<Extent> integers;
  /// Real, Reals
  std::vector<double> reals;
  /// Text, Texts; the name of an Element, a Type or a Constant's elements
  std::vector<std::string> texts;
  /// Constant: its elements, unless they are texts, which follow the name
  std::vector<std::byte> bytes;
  bool operator==(const ProgramAttribute&) const = default;
};

/// A step that no kernel computes: an operator's own function, called on this machine.
struct HostOperator {
  std::string op;
  std::vector<ProgramAttribute> attributes;
  /// buffers, or none
  std::vector<std::uint32_t> operands, results;
  /// by operand, as far as they have one
  std::vector<std::string> layouts;
  /// "node 'places' (nonzero)"
  std::string where;
};

/// A step that runs one of two bodies. Bodies are the steps behind it: the first up to `then_end`,
/// the second from there up to `else_end`.
struct BranchStep {
  struct Result {
    /// where it goes
    std::uint32_t result = 0;
    /// what the bodies give; the result itself if they write it there
    std::uint32_t first = 0, second = 0;
  };
  std::uint32_t condition = 0;
  std::uint32_t then_end = 0, else_end = 0;
  std::vector<Result> results;
};

/// A step that runs a body, the steps behind it up to `end`, again and again: so often, while a
/// condition holds, once for each position of what it scans.
struct LoopStep {
  /// What a run hands to the next. `out` is `in`'s value for that.
  struct Carried {
    std::uint32_t initial = 0, in = 0, out = 0;
    /// what is left in the end
    std::uint32_t result = kNoBuffer;
    /// a second place: one is read while the other is written
    std::uint32_t spare = kNoBuffer;
    /// kernels write `out` where it stays
    bool is_direct = false;
  };
  /// What every run gets another part of: a position of an axis, or an item of a sequence.
  struct Scanned {
    std::uint32_t source = 0, in = 0;
    std::int64_t axis = 0;
    bool is_reversed = false, is_sequence = false;
  };
  /// What the runs give, side by side along a new axis, or as a sequence.
  struct Stacked {
    std::uint32_t out = 0, result = 0;
    std::int64_t axis = 0;
    bool is_reversed = false, is_sequence = false;
    /// kernels write `out` where it stays in the result
    bool is_direct = false;
  };
  std::uint32_t end = 0;
  /// given to the loop
  std::uint32_t trip_count = kNoBuffer, condition = kNoBuffer;
  /// that the body is told
  std::uint32_t counter = kNoBuffer, goes_on = kNoBuffer;
  /// that the body gives
  std::uint32_t next_condition = kNoBuffer;
  std::vector<Carried> carried;
  std::vector<Scanned> scanned;
  std::vector<Stacked> stacked;
  /// for reports; 0 where data decides
  double run_count = 0;
};

}  // namespace tenon
