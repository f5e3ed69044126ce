#include "program/extent.h"

#include "base/error.h"

#include <algorithm>

namespace tenon::inline program {
namespace {

std::int64_t apply(Extent::Op op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Extent::Op::Add:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Extent::Op::Multiply:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    case Extent::Op::FloorDivide:
      if (b == 0) throw Error("an extent is divided by zero");
      result = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
      break;
    case Extent::Op::Minimum:
      result = std::min(a, b);
      break;
    case Extent::Op::Maximum:
      result = std::max(a, b);
      break;
    default:
      TENON_ASSERT(false, "an operation of two numbers");
  }
  if (overflows) throw Error("an extent is too large");
  return result;
}

}  // namespace

Extent Extent::symbol(std::size_t index) {
  return of({{Op::Symbol, static_cast<std::int64_t>(index)}});
}

Extent Extent::of(std::vector<Instruction> steps) {
  Extent extent;
  extent.steps_ = std::move(steps);
  return extent;
}

Extent Extent::combined(Op op, const Extent& a, const Extent& b) {
  if (a.is_number() && b.is_number()) return apply(op, a.number(), b.number());
  std::vector<Instruction> steps = a.steps_;
  steps.insert(steps.end(), b.steps_.begin(), b.steps_.end());
  steps.push_back({op, 0});
  return of(std::move(steps));
}

std::int64_t Extent::value(std::span<const std::int64_t> symbols) const {
  if (is_number()) return number();
  std::vector<std::int64_t> stack;
  for (const Instruction& step : steps_) {
    if (step.op == Op::Number) {
      stack.push_back(step.number);
    } else if (step.op == Op::Symbol) {
      stack.push_back(symbols[static_cast<std::size_t>(step.number)]);
    } else {
      const std::int64_t b = stack.back();
      stack.pop_back();
      stack.back() = apply(step.op, stack.back(), b);
    }
  }
  return stack.back();
}

std::string to_string(const Extent& extent) {
  std::vector<std::string> stack;
  for (const Extent::Instruction& step : extent.steps()) {
    if (step.op == Extent::Op::Number) {
      stack.push_back(std::to_string(step.number));
    } else if (step.op == Extent::Op::Symbol) {
      stack.push_back(concat("$", step.number));
    } else {
      static constexpr std::string_view kNames[] = {"", "", " + ", "*", " / ", " min ", " max "};
      const std::string b = std::move(stack.back());
      stack.pop_back();
      stack.back() = concat("(", stack.back(), kNames[static_cast<std::size_t>(step.op)], b, ")");
    }
  }
  return stack.back();
}

}  // namespace tenon::inline program
