#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tenon::inline program {

/// A number that a run computes from the extents of its inputs, as instructions of a stack machine.
/// Plain data, so that a saved program has no other dependency for its shapes.
class Extent {
 public:
  enum class Op : std::uint8_t { Number, Symbol, Add, Multiply, FloorDivide, Minimum, Maximum };
  struct Instruction {
    Op op = Op::Number;
    /// The constant, or the index of the symbol.
    std::int64_t number = 0;
    bool operator==(const Instruction&) const = default;
  };

  Extent() = default;
  Extent(std::int64_t number) : steps_{{Op::Number, number}} {}  // NOLINT: numbers are extents
  static Extent symbol(std::size_t index);
  static Extent of(std::vector<Instruction> steps);
  static Extent combined(Op op, const Extent& a, const Extent& b);

  const std::vector<Instruction>& steps() const { return steps_; }
  bool is_number() const { return steps_.size() == 1 && steps_.front().op == Op::Number; }
  std::int64_t number() const { return steps_.front().number; }
  /// Evaluates the extent for these values of the symbols. Throws Error on overflow of 64 bits and
  /// division by zero.
  std::int64_t value(std::span<const std::int64_t> symbols) const;
  bool operator==(const Extent&) const = default;

 private:
  std::vector<Instruction> steps_{{Op::Number, 0}};
};

std::string to_string(const Extent& extent);

}  // namespace tenon::inline program
