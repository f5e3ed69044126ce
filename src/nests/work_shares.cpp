#include "nests/work_shares.h"

#include <algorithm>

namespace tenon::nests {
namespace {

// Number of multiply-accumulates and of stores in a block.
struct Counts {
  double products = 0, stores = 0;
};
Counts counts_in(const Block& block) {
  Counts counts;
  for (const Statement& statement : block) {
    const Counts inner = counts_in(statement.body);
    const double trips =
        statement.extent.is_constant() ? static_cast<double>(statement.extent.constant()) : 1;
    counts.products += inner.products * trips;
    counts.stores += inner.stores * trips;
    const bool is_product = statement.kind == Statement::Kind::Fold &&
                            statement.reduction == Reduction::Sum &&
                            statement.value->kind == ScalarKind::Binary &&
                            statement.value->binary == BinaryOp::Multiply;
    counts.products += is_product;
    counts.stores += statement.kind == Statement::Kind::Store;
  }
  return counts;
}

}  // namespace

std::vector<double> work_shares(const std::vector<const LoopNest*>& nests) {
  std::vector<Counts> counts;
  Counts total;
  for (const LoopNest* nest : nests) {
    counts.push_back(counts_in(nest->body));
    total.products += counts.back().products;
    total.stores += counts.back().stores;
  }
  std::vector<double> shares;
  for (const Counts& count : counts) {
    shares.push_back(total.products > 0 ? count.products / total.products
                                        : count.stores / std::max(total.stores, 1.0));
  }
  return shares;
}

}  // namespace tenon::nests
