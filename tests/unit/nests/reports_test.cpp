// Run-time errors that kernels of a nest may report.
#include "nests/reports.h"

#include <gtest/gtest.h>

namespace tenon::nests::reports_test {
namespace {

Scalar loaded(Bounds bounds) {
  ScalarNode node;
  node.kind = ScalarKind::Load;
  node.dtype = DType::I64;
  node.view = {Dim(4)};
  node.args = {loop_scalar(0)};
  node.bounds = bounds;
  return Scalar(std::make_shared<const ScalarNode>(std::move(node)));
}

LoopNest storing(const Scalar& value) {
  LoopNest nest;
  Statement store;
  store.kind = Statement::Kind::Store;
  store.value = value;
  store.indices = {loop_scalar(0)};
  Statement loop;
  loop.extent = 4;
  loop.body = {store};
  nest.body = {loop};
  return nest;
}

TEST(Reports, CheckedReads) {
  EXPECT_FALSE(may_report(storing(loaded(Bounds::Inside))));
  EXPECT_FALSE(may_report(storing(loaded(Bounds::Fill))));
  EXPECT_TRUE(may_report(storing(loaded(Bounds::Checked))));
}

TEST(Reports, IntegerDivision) {
  const auto quotient = [](const Scalar& divisor) {
    return binary_scalar(BinaryOp::FloorDivide, DType::I64, loop_scalar(0), divisor);
  };
  EXPECT_FALSE(may_report(storing(quotient(integer_scalar(3)))));
  EXPECT_TRUE(may_report(storing(quotient(integer_scalar(0)))));
  EXPECT_TRUE(may_report(storing(quotient(loaded(Bounds::Inside)))));
  const Scalar real = literal_scalar(DType::F32, 2, 2);
  EXPECT_FALSE(may_report(storing(binary_scalar(BinaryOp::Divide, DType::F32, real, real))));
}

// In stores, loop limits and updates.
TEST(Reports, ExaminesStoresLimitsAndUpdates) {
  LoopNest nest = storing(loaded(Bounds::Inside));
  nest.body.front().limit = loaded(Bounds::Checked);
  EXPECT_TRUE(may_report(nest));
  nest = storing(loaded(Bounds::Inside));
  nest.body.front().body.front().indices = {loaded(Bounds::Checked)};
  EXPECT_TRUE(may_report(nest));
  nest = storing(loaded(Bounds::Inside));
  nest.body.front().body.front().kind = Statement::Kind::Update;
  nest.body.front().body.front().bounds = Bounds::Checked;
  EXPECT_TRUE(may_report(nest));
}

}  // namespace
}  // namespace tenon::nests::reports_test
