#include "nests/affine.h"

#include "nests/scalar_walk.h"

namespace tenon::nests {
namespace {

using Affines = ScalarMemo<std::optional<Affine>>;

std::optional<Affine> affine_of(const Scalar& scalar, Affines& known);

std::optional<Affine> found_affine(const Scalar& scalar, Affines& known) {
  if (scalar->kind == ScalarKind::Integer) return Affine{{}, scalar->integer};
  if (scalar->kind == ScalarKind::Loop) return Affine{{{scalar->id, 1}}, 0};
  if (scalar->kind != ScalarKind::Binary) return std::nullopt;
  std::optional<Affine> a = affine_of(scalar->args[0], known);
  std::optional<Affine> b = a ? affine_of(scalar->args[1], known) : std::nullopt;
  if (!b) return std::nullopt;
  bool overflows = false;
  const auto multiply = [&](std::int64_t& x, std::int64_t y) {
    overflows |= __builtin_mul_overflow(x, y, &x);
  };
  const auto add = [&](std::int64_t& x, std::int64_t y) {
    overflows |= __builtin_add_overflow(x, y, &x);
  };
  if (scalar->binary == BinaryOp::Multiply) {
    if (!b->steps.empty()) std::swap(a, b);
    if (!b->steps.empty()) return std::nullopt;
    for (auto& [loop, step] : a->steps) multiply(step, b->start);
    multiply(a->start, b->start);
  } else if (scalar->binary == BinaryOp::Add || scalar->binary == BinaryOp::Subtract) {
    if (scalar->binary == BinaryOp::Subtract) {
      for (auto& [loop, step] : b->steps) multiply(step, -1);
      multiply(b->start, -1);
    }
    for (const auto& [loop, step] : b->steps) add(a->steps[loop], step);
    add(a->start, b->start);
  } else {
    return std::nullopt;
  }
  if (overflows) return std::nullopt;
  std::erase_if(a->steps, [](const auto& step) { return step.second == 0; });
  return a;
}

std::optional<Affine> affine_of(const Scalar& scalar, Affines& known) {
  return known.of(scalar, [&] { return found_affine(scalar, known); });
}

}  // namespace

std::optional<Affine> affine_of(const Scalar& scalar) {
  Affines known;
  return affine_of(scalar, known);
}

Scalar scalar_of(const Affine& affine) {
  Scalar sum = integer_scalar(0);
  for (const auto& [loop, step] : affine.steps) {
    const Scalar term =
        binary_scalar(BinaryOp::Multiply, DType::I64, loop_scalar(loop), integer_scalar(step));
    sum = binary_scalar(BinaryOp::Add, DType::I64, sum, term);
  }
  return binary_scalar(BinaryOp::Add, DType::I64, sum, integer_scalar(affine.start));
}

void ScalarRewriter::apply(Block& block) {
  for (Statement& statement : block) {
    for (Scalar* scalar : {&statement.value, &statement.place, &statement.limit}) {
      if (scalar->is_defined()) *scalar = apply(*scalar);
    }
    for (Scalar& index : statement.indices) index = apply(index);
    apply(statement.body);
  }
}

Scalar ScalarRewriter::apply(const Scalar& scalar) {
  const auto known = done_.find(&scalar.node());
  if (known != done_.end()) return known->second;
  ScalarNode node = scalar.node();
  for (Scalar& arg : node.args) arg = apply(arg);
  kept_.push_back(scalar);
  return done_.emplace(&scalar.node(), change_(std::move(node))).first->second;
}

void for_each_statement(Block& block, const std::function<void(Statement&)>& visit) {
  for (Statement& statement : block) {
    visit(statement);
    for_each_statement(statement.body, visit);
  }
}

}  // namespace tenon::nests
