#include "nests/affine.h"

namespace tenon::nests {

std::optional<Affine> affine_of(const Scalar& scalar) {
  if (scalar->kind == ScalarKind::Integer) return Affine{{}, scalar->integer};
  if (scalar->kind == ScalarKind::Loop) return Affine{{{scalar->id, 1}}, 0};
  if (scalar->kind != ScalarKind::Binary) return std::nullopt;
  std::optional<Affine> a = affine_of(scalar->args[0]), b = affine_of(scalar->args[1]);
  if (!a || !b) return std::nullopt;
  if (scalar->binary == BinaryOp::Multiply) {
    if (!b->steps.empty()) std::swap(a, b);
    if (!b->steps.empty()) return std::nullopt;
    for (auto& [loop, step] : a->steps) step *= b->start;
    a->start *= b->start;
  } else if (scalar->binary == BinaryOp::Add || scalar->binary == BinaryOp::Subtract) {
    const std::int64_t sign = scalar->binary == BinaryOp::Add ? 1 : -1;
    for (const auto& [loop, step] : b->steps) a->steps[loop] += sign * step;
    a->start += sign * b->start;
  } else {
    return std::nullopt;
  }
  std::erase_if(a->steps, [](const auto& step) { return step.second == 0; });
  return a;
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

void Rewriting::apply(Block& block) {
  for (Statement& statement : block) {
    for (Scalar* scalar : {&statement.value, &statement.place, &statement.limit}) {
      if (scalar->is_defined()) *scalar = apply(*scalar);
    }
    for (Scalar& index : statement.indices) index = apply(index);
    apply(statement.body);
  }
}

Scalar Rewriting::apply(const Scalar& scalar) {
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
