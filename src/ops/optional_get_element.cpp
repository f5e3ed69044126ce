#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::optional_get_element_op {
namespace {

ResultTypes infer(const NoAttrs&, const OperandTypes& in) {
  const Type& type = in.type("x");
  return type.kind() == Type::Kind::Optional ? type.element() : type;
}

void evaluate(const NoAttrs&, Evaluation& op) {
  const Datum& x = op.datum("x");
  const bool is_optional = x.kind() == Type::Kind::Optional;
  if (is_optional && x.items().empty()) {
    throw Error("optional_get_element: the optional holds nothing");
  }
  op.set("y", is_optional ? x.items().front() : x);
}

}  // namespace

TENON_DEFINE_OP(optional_get_element) = OpSpec<NoAttrs>{
    .name = "optional_get_element",
    .summary = "what an optional holds; a tensor or sequence is given back as it is",
    .operands = {"x"},
    .results = {"y"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads an optional"),
    .layout = logical_order(),
    .precision = Precision::MovesOnly,
};

}  // namespace tenon::inline ops::optional_get_element_op
