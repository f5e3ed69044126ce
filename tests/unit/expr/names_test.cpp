#include "expr/names.h"

#include <gtest/gtest.h>

namespace tenon::expr_names_test {
namespace {

TEST(ExprNames, DistinguishesFunctionsPredicatesAndBitOps) {
  for (const UnaryOp op :
       {UnaryOp::Exp, UnaryOp::Log, UnaryOp::Tan, UnaryOp::Atanh, UnaryOp::Erf}) {
    EXPECT_TRUE(is_transcendental(op)) << name_of(op);
  }
  for (const UnaryOp op :
       {UnaryOp::Negate, UnaryOp::Abs, UnaryOp::Sqrt, UnaryOp::Not, UnaryOp::BitNot, UnaryOp::IsNan,
        UnaryOp::IsPositiveInf, UnaryOp::IsNegativeInf}) {
    EXPECT_FALSE(is_transcendental(op)) << name_of(op);
  }
}

}  // namespace
}  // namespace tenon::expr_names_test
