#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

namespace tenon::inline ops::string_split_op {
namespace {

struct Attrs {
  std::string delimiter;  // empty: runs of white space
  std::optional<std::int64_t> max_splits;
};

ResultTypes infer(const Attrs&, const OperandTypes& in) {
  require_strings("string_split", in["x"]);
  TensorType pieces{DType::String, in["x"].dims, {}};
  TensorType counts{DType::I64, in["x"].dims, {}};
  pieces.dims.push_back(in.unknown());
  return {pieces, counts};
}

constexpr std::string_view kWhiteSpace = " \t\n\v\f\r";

std::vector<std::string> pieces_of(const Attrs& attrs, std::string_view text) {
  const std::size_t limit = attrs.max_splits && *attrs.max_splits >= 0
                                ? static_cast<std::size_t>(*attrs.max_splits)
                                : text.size() + 1;
  const bool at_white_space = attrs.delimiter.empty();
  const auto trim = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
  };
  std::vector<std::string> pieces;
  if (at_white_space) trim();
  while (pieces.size() < limit) {
    const std::size_t end =
        at_white_space ? text.find_first_of(kWhiteSpace) : text.find(attrs.delimiter);
    if (end == std::string_view::npos) break;
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end + (at_white_space ? 0 : attrs.delimiter.size()));
    if (at_white_space) trim();
  }
  if (!at_white_space || !text.empty()) pieces.emplace_back(text);
  return pieces;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  Tensor counts(DType::I64, x.shape());
  std::vector<std::vector<std::string>> rows;
  std::size_t width = 0;
  for (const std::string& text : x.strings()) {
    rows.push_back(pieces_of(attrs, text));
    width = std::max(width, rows.back().size());
    counts.set_integer(static_cast<std::int64_t>(rows.size()) - 1,
                       static_cast<std::int64_t>(rows.back().size()));
  }
  Shape shape = x.shape();
  shape.push_back(static_cast<std::int64_t>(width));
  Tensor pieces(DType::String, shape);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::move(rows[row].begin(), rows[row].end(),
              pieces.mutable_strings().begin() + static_cast<std::ptrdiff_t>(row * width));
  }
  op.set("pieces", std::move(pieces));
  op.set("counts", std::move(counts));
}

}  // namespace

TENON_DEFINE_OP(string_split) = OpSpec<Attrs>{
    .name = "string_split",
    .summary =
        "the pieces of each text between delimiters (runs of white space if that is empty), filled "
        "up "
        "with empty texts along a new last axis, and how many each text has",
    .operands = {"x"},
    .results = {"pieces", optional("counts")},
    .attrs = {{"delimiter", &Attrs::delimiter}, {"max_splits", &Attrs::max_splits}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it works on texts"),
    .layout = logical_order(),
    .examples = {"x: string a"},
};

}  // namespace tenon::inline ops::string_split_op
