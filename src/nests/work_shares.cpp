#include "nests/work_shares.h"

#include <algorithm>
#include <optional>
#include <set>

#include "ops/chain_cost.h"
#include "ops/expr_names.h"

namespace tenon::nests {
namespace {

// How often a block multiplies into a sum, and how often it stores.
struct Counts {
  double products = 0, stores = 0;
};
Counts counts_in(const Block& block) {
  Counts counts;
  for (const Statement& statement : block) {
    const Counts inner = counts_in(statement.body);
    const double trips = statement.extent.is_constant() ? static_cast<double>(statement.extent.constant()) : 1;
    counts.products += inner.products * trips;
    counts.stores += inner.stores * trips;
    const bool is_product = statement.kind == Statement::Kind::Fold && statement.reduction == Reduction::Sum &&
                            statement.value->kind == ScalarKind::Binary && statement.value->binary == BinaryOp::Multiply;
    counts.products += is_product;
    counts.stores += statement.kind == Statement::Kind::Store;
  }
  return counts;
}

// What `exp` and its like count for.
constexpr double kFunctionFlops = 10;

double flops_of(const Scalar& scalar, std::set<const ScalarNode*>& seen) {
  if (!scalar.is_defined() || !seen.insert(&scalar.node()).second) return 0;
  if (scalar->kind == ScalarKind::Load) return 0;
  double flops = 0;
  if (scalar->kind == ScalarKind::Binary || scalar->kind == ScalarKind::Select) flops = 1;
  if (scalar->kind == ScalarKind::Unary) flops = is_transcendental(scalar->unary) ? kFunctionFlops : 1;
  for (const Scalar& arg : scalar->args) flops += flops_of(arg, seen);
  return flops;
}

// Nothing where symbols decide.
std::optional<double> flops_of(const Block& block) {
  double flops = 0;
  for (const Statement& statement : block) {
    if (statement.kind == Statement::Kind::Loop) {
      const std::optional<double> inner = flops_of(statement.body);
      if (!inner || !statement.extent.is_constant()) return std::nullopt;
      flops += *inner * static_cast<double>(statement.extent.constant());
      continue;
    }
    std::set<const ScalarNode*> seen;
    flops += flops_of(statement.value, seen);
    if (statement.kind == Statement::Kind::Fold || statement.kind == Statement::Kind::Update) flops += 1;
  }
  return flops;
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

bool is_little_work(const LoopNest& nest) {
  const std::optional<double> flops = flops_of(nest.body);
  if (!flops) return false;
  double bytes = 0;
  for (const NestBuffer& buffer : nest.buffers) {
    const Dim count = product(buffer.dims);
    if (!count.is_constant()) return false;
    if (buffer.storage == Storage::Scratch) continue;
    bytes += static_cast<double>(count.constant()) * static_cast<double>(info(buffer.dtype).storage_bytes);
  }
  return tenon::is_little_work(*flops, bytes);
}

}  // namespace tenon::nests
