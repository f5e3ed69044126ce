#pragma once

#include "ir/constraint.h"

#include <optional>

// How ops compare extents. What symbols leave open is assumed and recorded, so that a run checks
// it; an op that asked `provably_different` instead would compute with shapes that nobody looked
// at.
namespace tenon {

/// Each gives false where it can never hold. Where that depends on symbols, it is written down as a
/// constraint of the node whose types are being inferred, if somebody collects them.
[[nodiscard]] bool assume_equal(const Dim& a, const Dim& b);
[[nodiscard]] bool assume_multiple(const Dim& a, const Dim& divisor);
[[nodiscard]] bool assume_at_most(const Dim& a, const Dim& b);
/// That it broadcasts to `whole`: is equal to it, or 1.
[[nodiscard]] bool assume_one_or(const Dim& a, const Dim& whole);
/// The extent that both broadcast to; nothing where they never do.
[[nodiscard]] std::optional<Dim> assume_broadcast(const Dim& a, const Dim& b);

/// Collects what is assumed on this thread while it lives. With none alive nothing is written down:
/// whoever wants to know what a node takes for granted infers it once more (`constraints_of`).
class AssumptionScope {
 public:
  AssumptionScope();
  ~AssumptionScope();
  AssumptionScope(const AssumptionScope&) = delete;
  AssumptionScope& operator=(const AssumptionScope&) = delete;

  std::vector<Constraint> take();

 private:
  friend bool assume(Constraint::Kind kind, const Dim& a, const Dim& b);
  AssumptionScope* outer_;
  std::vector<Constraint> found_;
};

}  // namespace tenon
