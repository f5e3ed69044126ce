#pragma once

#include "program/extent.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::inline program {

/// Null id of a buffer: an omitted operand, or an unused result.
inline constexpr std::uint32_t kNoBuffer = 0xffffffff;

/// Attribute of an operator, as plain data.
struct ProgramAttribute {
  /// Enumerators are in the order of the IR's attributes (`ir/attribute.h`).
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
  /// Value of Bool, Integer, Integers; shape of a Constant.
  std::vector<Extent> integers;
  /// Value of Real, Reals.
  std::vector<double> reals;
  /// Value of Text, Texts; name of an Element, a Type or a Constant's element type.
  std::vector<std::string> texts;
  /// Elements of a Constant, except texts, which follow the type name in `texts`.
  std::vector<std::byte> bytes;
  bool operator==(const ProgramAttribute&) const = default;
};

/// A host operator: a step without a kernel, executed by the operator's own function on the CPU.
struct HostOperator {
  std::string op;
  std::vector<ProgramAttribute> attributes;
  /// Buffer ids; kNoBuffer if absent.
  std::vector<std::uint32_t> operands, results;
  /// Layouts by operand; may be shorter than `operands`.
  std::vector<std::string> layouts;
  /// E.g. "node 'places' (nonzero)".
  std::string where;
};

/// A step that runs one of two bodies. The bodies follow the step: the first up to `then_end`, the
/// second from there up to `else_end`.
struct BranchStep {
  struct Result {
    /// Buffer that receives the result.
    std::uint32_t result = 0;
    /// Results of the bodies; equal to `result` if a body writes it directly.
    std::uint32_t first = 0, second = 0;
  };
  std::uint32_t condition = 0;
  std::uint32_t then_end = 0, else_end = 0;
  std::vector<Result> results;
};

/// A step that repeats a body, the steps up to `end`: for a trip count, while a condition holds, or
/// once for each position of a scanned axis.
struct LoopStep {
  /// A loop-carried value. `out` becomes `in` of the next iteration.
  struct Carried {
    std::uint32_t initial = 0, in = 0, out = 0;
    /// Final value after the last iteration.
    std::uint32_t result = kNoBuffer;
    /// Second buffer for double buffering: one is read while the other is written.
    std::uint32_t spare = kNoBuffer;
    /// Kernels write `out` directly into its final buffer.
    bool is_direct = false;
  };
  /// A scanned input: each iteration receives one position of an axis, or one item of a sequence.
  struct Scanned {
    std::uint32_t source = 0, in = 0;
    std::int64_t axis = 0;
    bool is_reversed = false, is_sequence = false;
  };
  /// A scan output: the results of all iterations, stacked along a new axis or as a sequence.
  struct Stacked {
    std::uint32_t out = 0, result = 0;
    std::int64_t axis = 0;
    bool is_reversed = false, is_sequence = false;
    /// Kernels write `out` directly into its slice of the result.
    bool is_direct = false;
  };
  std::uint32_t end = 0;
  /// Operands of the loop.
  std::uint32_t trip_count = kNoBuffer, condition = kNoBuffer;
  /// Inputs of the body: iteration number and condition.
  std::uint32_t counter = kNoBuffer, goes_on = kNoBuffer;
  /// Result of the body.
  std::uint32_t next_condition = kNoBuffer;
  std::vector<Carried> carried;
  std::vector<Scanned> scanned;
  std::vector<Stacked> stacked;
  /// Number of iterations for reports; 0 if it depends on data.
  double run_count = 0;
};

}  // namespace tenon::inline program
