#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/letter_case.h"

#include <cstdint>
#include <set>

namespace tenon::inline ops::string_normalizer_op {
namespace {

enum class CaseChange : std::uint8_t { None, Lower, Upper };

struct Attrs {
  CaseChange case_change = CaseChange::None;
  bool is_case_sensitive = false;
  std::vector<std::string> stopwords;
};

TensorType infer(const Attrs&, const OperandTypes& in) {
  const TensorType& x = in["x"];
  require_strings("string_normalizer", x);
  if (x.rank() != 1 && !(x.rank() == 2 && assume_equal(x.dims[0], 1))) {
    throw Error("string_normalizer: one row of texts is needed")
        .expected("string[n] or string[1, n]")
        .got(x);
  }
  TensorType y{DType::String, x.dims, {}};
  y.dims.back() = in.unknown();
  return y;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  const auto compared = [&](const std::string& text) {
    return attrs.is_case_sensitive ? text : to_lower_case(text);
  };
  std::set<std::string> stopwords;
  for (const std::string& word : attrs.stopwords) stopwords.insert(compared(word));
  std::vector<std::string> kept;
  for (const std::string& text : x.strings()) {
    if (stopwords.contains(compared(text))) continue;
    kept.push_back(attrs.case_change == CaseChange::Lower   ? to_lower_case(text)
                   : attrs.case_change == CaseChange::Upper ? to_upper_case(text)
                                                            : text);
  }
  if (kept.empty()) kept.emplace_back();
  Shape shape = x.shape();
  shape.back() = static_cast<std::int64_t>(kept.size());
  op.set("y", Tensor::of_strings(std::move(shape), std::move(kept)));
}

}  // namespace

TENON_DEFINE_OP(string_normalizer) = OpSpec<Attrs>{
    .name = "string_normalizer",
    .summary =
        "a row of texts without the stop words, in lower or upper case if asked; one empty text if "
        "none "
        "is left",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"case_change", &Attrs::case_change, words("none lower upper")},
              {"is_case_sensitive", &Attrs::is_case_sensitive},
              {"stopwords", &Attrs::stopwords}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it works on texts"),
    .layout = logical_order(),
    .examples = {"x: string a"},
};

}  // namespace tenon::inline ops::string_normalizer_op
