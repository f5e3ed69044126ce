// Rewrites two-operand einsums to matrix products, so that rules about matrix products apply:
// exporters write attention in either form.
#include "expr/equation.h"
#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"

#include <algorithm>

namespace tenon::passes::simplification {

using namespace rewrite;

namespace {

using Labels = Equation::Labels;

bool has(const Labels& labels, Equation::Label label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

bool has_each_once(Labels labels) {
  std::sort(labels.begin(), labels.end());
  return std::adjacent_find(labels.begin(), labels.end()) == labels.end();
}

Labels joined(const Labels& a, const Labels& b, const Labels& c = {}) {
  Labels all = a;
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

ValueId transposed(const Match& match, ValueId value, const Labels& from, const Labels& to) {
  if (from == to) return value;
  Dims perm;
  for (const Equation::Label label : to) {
    perm.emplace_back(std::find(from.begin(), from.end(), label) - from.begin());
  }
  return match.make("transpose", {value}, {{"perm", perm}});
}

/// Labels by role: in both operands and the result, in one operand and the result, in both operands
/// only.
struct EinsumProduct {
  Labels batch, rows, columns, summed;
};

std::optional<EinsumProduct> product_of(const Equation& equation, const std::vector<Dims>& dims) {
  const Labels &a = equation.operand(0), &b = equation.operand(1), &y = equation.result();
  if (!has_each_once(a) || !has_each_once(b) || !has_each_once(y)) return {};
  EinsumProduct product;
  for (const Equation::Label label : y) {
    if (has(a, label) && has(b, label))
      product.batch.push_back(label);
    else
      (has(a, label) ? product.rows : product.columns).push_back(label);
  }
  for (std::size_t position : {0U, 1U}) {
    const Labels& labels = equation.operand(position);
    for (std::size_t axis = 0; axis < labels.size(); ++axis) {
      if (!(dims[position][axis] == equation.extent(labels[axis]))) return {};  // may be repeated
      if (has(y, labels[axis])) continue;
      if (!has(a, labels[axis]) || !has(b, labels[axis])) return {};  // reduced in one operand only
      if (position == 0) product.summed.push_back(labels[axis]);
    }
  }
  // The rows may be several axes if the other operand is a single matrix.
  const bool is_matrix = product.columns.size() == 1 && product.summed.size() == 1 &&
                         !product.rows.empty() &&
                         (product.rows.size() == 1 || product.batch.empty());
  return is_matrix ? std::optional(product) : std::nullopt;
}

ValueId as_matmul(const Match& match) {
  const std::optional<AttrValue>& text = match.attr("e");
  const TensorType *a = match.type("a"), *b = match.type("b");
  if (!text || !a || !b || !match.root_type().is_tensor()) return {};
  const std::vector<Dims> dims{a->dims, b->dims};
  const Equation equation(std::get<std::string>(*text), dims);
  const std::optional<EinsumProduct> product = product_of(equation, dims);
  if (!product) return {};
  const auto& [batch, rows, columns, summed] = *product;
  const ValueId left =
      transposed(match, match.value("a"), equation.operand(0), joined(batch, rows, summed));
  const ValueId right =
      transposed(match, match.value("b"), equation.operand(1), joined(batch, summed, columns));
  const ValueId y = match.make("matmul", {left, right});
  return transposed(match, y, joined(batch, rows, columns), equation.result());
}

}  // namespace

std::vector<Rule> einsum_rules() {
  return {{"einsum(a, b) {equation = e}", as_matmul, is_common_float("a")}};
}

}  // namespace tenon::passes::simplification
