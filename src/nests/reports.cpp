#include "nests/reports.h"

#include "nests/scalar_walk.h"

#include <algorithm>

namespace tenon::nests {
namespace {

bool may_report(const Scalar& scalar) {
  return scalar.is_defined() && any_node(scalar, [](const ScalarNode& node) {
           if (node.kind == ScalarKind::Load) return node.bounds == Bounds::Checked;
           if (node.kind != ScalarKind::Binary || !divides_integers(node)) return false;
           const ScalarNode& divisor = node.args[1].node();
           return divisor.kind != ScalarKind::Integer || divisor.integer == 0;
         });
}

bool may_report(const Block& block) {
  return std::any_of(block.begin(), block.end(), [](const Statement& statement) {
    const bool is_checked =
        statement.kind == Statement::Kind::Update && statement.bounds == Bounds::Checked;
    const auto reports = [](const Scalar& scalar) { return may_report(scalar); };
    return is_checked || reports(statement.value) || reports(statement.place) ||
           reports(statement.limit) || std::ranges::any_of(statement.indices, reports) ||
           may_report(statement.body);
  });
}

}  // namespace

bool divides_integers(const ScalarNode& node) {
  switch (node.binary) {
    case BinaryOp::Divide:
    case BinaryOp::FloorDivide:
    case BinaryOp::Modulo:
    case BinaryOp::Remainder:
      return is_integer(node.args[0]->dtype);
    default:
      return false;
  }
}

bool may_report(const LoopNest& nest) { return may_report(nest.body); }

}  // namespace tenon::nests
