#pragma once

#include "ir/constraint.h"

#include <optional>

// Comparisons of extents for operators. A comparison that symbols leave open is assumed and
// recorded as a constraint, which a run checks when shapes are bound. An op that called
// `provably_different` instead would compute with unchecked shapes.
namespace tenon::inline ir {

/// Each function returns false if the relation can never hold. If it depends on symbols, the
/// function records it as a constraint of the node under inference, provided that an
/// AssumptionScope is alive.
[[nodiscard]] bool assume_equal(const Dim& a, const Dim& b);
[[nodiscard]] bool assume_multiple(const Dim& a, const Dim& divisor);
[[nodiscard]] bool assume_at_most(const Dim& a, const Dim& b);
/// Assumes that `a` broadcasts to `whole`: it equals `whole` or is 1.
[[nodiscard]] bool assume_one_or(const Dim& a, const Dim& whole);
/// Returns the extent that both broadcast to, or nullopt if they never broadcast.
[[nodiscard]] std::optional<Dim> assume_broadcast(const Dim& a, const Dim& b);

/// Collects the assumptions of the current thread during its lifetime. Without a scope, assumptions
/// are not recorded: `constraints_of` infers a node again within a scope to obtain them.
class AssumptionScope {
 public:
  AssumptionScope();
  ~AssumptionScope();
  AssumptionScope(const AssumptionScope&) = delete;
  AssumptionScope& operator=(const AssumptionScope&) = delete;

  std::vector<Constraint> take();

 private:
  friend bool assume(ExtentRelation kind, const Dim& a, const Dim& b);
  AssumptionScope* outer_;
  std::vector<Constraint> found_;
};

}  // namespace tenon::inline ir
