#include "base/pattern.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::regex_full_match_op {
namespace {

struct Attrs {
  std::string pattern;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  require_strings("regex_full_match", in["x"]);
  Pattern{attrs.pattern};  // refuses an invalid pattern at compile time
  return {DType::Bool, in["x"].dims, in["x"].layout};
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const Pattern pattern(attrs.pattern);
  Tensor y(DType::Bool, x.shape());
  std::int64_t index = 0;
  for (const std::string& text : x.strings()) y.set_integer(index++, pattern.matches(text) ? 1 : 0);
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(regex_full_match) = OpSpec<Attrs>{
    .name = "regex_full_match",
    .summary = "whether each whole text matches a regular expression (in RE2's syntax)",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"pattern", &Attrs::pattern, required}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it works on texts"),
    .examples = {"x: string a; pattern = \"a*\""},
};

}  // namespace tenon::inline ops::regex_full_match_op
