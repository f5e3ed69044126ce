#include "program/shape_check.h"

#include "base/error.h"

namespace tenon::inline program {

bool holds(ExtentRelation kind, std::int64_t a, std::int64_t b) {
  switch (kind) {
    case ExtentRelation::Equal:
      return a == b;
    case ExtentRelation::AtMost:
      return a <= b;
    case ExtentRelation::OneOr:
      return a == 1 || a == b;
    case ExtentRelation::Broadcast:
      break;
  }
  return a == b || a == 1 || b == 1;
}

void require_check(const ShapeCheck& check, std::span<const std::int64_t> symbols) {
  std::int64_t a = 0, b = 0;
  try {
    a = check.a.value(symbols);
    b = check.b.value(symbols);
  } catch (Error& error) {  // overflow or division by zero
    throw error.at(check.where).expected(check.rule);
  }
  if (holds(check.kind, a, b)) return;
  throw Error(concat(check.op, ": the extents of this run do not fit"), ErrorKind::Usage)
      .at(check.where)
      .expected(check.rule)
      .got(a, " and ", b);
}

}  // namespace tenon::inline program
