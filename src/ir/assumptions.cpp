#include "ir/assumptions.h"

#include "ir/dim_broadcast.h"

#include <utility>

namespace tenon::inline ir {
namespace {

// A mutable global, against the house style: comparisons sit many calls below `infer`, in functions
// that `lower` and `gradient` share, and an op that had to pass the scope along could forget it.
thread_local AssumptionScope* innermost = nullptr;

}  // namespace

bool assume(ExtentRelation kind, const Dim& a, const Dim& b) {
  const Truth truth = truth_of(kind, a, b);
  if (truth == Truth::Sometimes && innermost != nullptr)
    innermost->found_.push_back({kind, a, b, "", ""});
  return truth != Truth::Never;
}

bool assume_equal(const Dim& a, const Dim& b) { return assume(ExtentRelation::Equal, a, b); }
bool assume_multiple(const Dim& a, const Dim& divisor) { return assume_equal(mod(a, divisor), 0); }
bool assume_at_most(const Dim& a, const Dim& b) { return assume(ExtentRelation::AtMost, a, b); }
bool assume_one_or(const Dim& a, const Dim& whole) {
  return assume(ExtentRelation::OneOr, a, whole);
}

std::optional<Dim> assume_broadcast(const Dim& a, const Dim& b) {
  // An extent that is provably at most the other (a mask that was cut to fit) leaves the other
  // extent unchanged, so that later nodes still see its symbol. This assumes slightly more than
  // broadcasting: an extent of 0 would also broadcast with 1.
  const auto stays_within = [](const Dim& own, const Dim& whole) {
    return !own.is_constant() && !whole.is_constant() && provably_at_most(own, whole);
  };
  if (!(a == b) && stays_within(a, b)) return assume_one_or(a, b) ? std::optional(b) : std::nullopt;
  if (!(a == b) && stays_within(b, a)) return assume_one_or(b, a) ? std::optional(a) : std::nullopt;
  if (!assume(ExtentRelation::Broadcast, a, b)) return std::nullopt;
  return broadcast(a, b);
}

AssumptionScope::AssumptionScope() : outer_(innermost) { innermost = this; }
AssumptionScope::~AssumptionScope() { innermost = outer_; }
std::vector<Constraint> AssumptionScope::take() { return std::move(found_); }

}  // namespace tenon::inline ir
