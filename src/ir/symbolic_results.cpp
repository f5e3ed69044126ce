#include "ir/symbolic_results.h"

#include "base/error.h"

#include <algorithm>
#include <deque>

namespace tenon::inline ir {
namespace {

// Maps equal extents to one short name.
class ShortNames {
 public:
  explicit ShortNames(std::string_view prefix) : prefix_(prefix) {}

  Dim of(const Dim& dim) {
    const auto known = std::ranges::find(dims_, dim);
    const auto index = known - dims_.begin();
    if (known == dims_.end()) dims_.push_back(dim);
    return Dim::symbol(concat(prefix_, index), dim.range());
  }
  bool is_empty() const { return dims_.empty(); }

 private:
  std::string prefix_;
  Dims dims_;
};

bool is_long(const Dim& dim) { return !dim.is_constant() && !dim.symbol_name(); }

Dims shortened(Dims dims, ShortNames& names) {
  for (Dim& dim : dims) {
    if (is_long(dim)) dim = names.of(dim);
  }
  return dims;
}

// The derived range may reach below zero; extents do not.
Dim as_extent(const Dim& symbol) {
  const Range range = symbol.range();
  return Dim::symbol(*symbol.symbol_name(), {std::max<std::int64_t>(range.lo, 0),
                                             std::clamp<std::int64_t>(range.hi, 0, kMaxExtent)});
}

}  // namespace

std::optional<InferOutput> infer_symbolic(const OpDef& op, const InferInput& input) {
  std::vector<OperandFacts> facts(input.operands.begin(), input.operands.end());
  std::deque<Dims> known;
  ShortNames operands("?long");
  for (OperandFacts& operand : facts) {
    if (operand.type.is_tensor())
      operand.type.tensor().dims = shortened(operand.type.tensor().dims, operands);
    if (operand.known) operand.known = &known.emplace_back(shortened(*operand.known, operands));
  }
  if (operands.is_empty()) return std::nullopt;
  InferOutput output =
      op.infer(InferInput{input.attrs, facts, input.present, input.bodies, input.result_count});
  ShortNames results("?");
  for (Type& type : output.types) {
    if (!type.is_tensor()) continue;
    for (Dim& dim : type.tensor().dims) {
      if (!dim.is_constant()) dim = as_extent(results.of(dim));
    }
  }
  if (results.is_empty()) return std::nullopt;
  output.known.assign(output.types.size(), std::nullopt);
  return output;
}

}  // namespace tenon::inline ir
