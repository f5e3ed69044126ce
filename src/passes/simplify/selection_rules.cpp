#include "passes/rewrite/facts.h"
#include "passes/simplify/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::passes::simplification {

using namespace rewrite;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Returns a bound of a clip: its number, `missing` if it is absent, or nullopt if its elements
// differ.
std::optional<double> bound(const Match& match, std::string_view name, double missing) {
  return match.has(name) ? uniform_value(match.graph(), match.value(name)) : missing;
}

// Clips the bounds of the inner clip by the outer one.
ValueId one_clip(const Match& match) {
  const auto a = bound(match, "a", -infinity), b = bound(match, "b", infinity);
  const auto c = bound(match, "c", -infinity), d = bound(match, "d", infinity);
  if (!a || !b || !c || !d || !(*a <= *b) || !(*c <= *d)) {
    match.refuse("the bounds are not known to be ordered");
    return {};
  }
  const double low = std::min(std::max(*a, *c), *d), high = std::min(std::max(*b, *c), *d);
  const DType dtype = match.root_type().tensor().dtype;
  const auto made = [&](double value, double missing) {
    return value == missing ? ValueId{} : match.make_scalar(value, dtype);
  };
  return match.make("clip", {match.value("x"), made(low, -infinity), made(high, infinity)});
}

ValueId clip_from_zero(const Match& match) {
  const auto low = bound(match, "a", -infinity);
  if (!low || *low > 0) return {};
  const DType dtype = match.root_type().tensor().dtype;
  return match.make("clip", {match.value("x"), match.make_scalar(0, dtype), match.value("b")});
}

bool is_clipped_above_zero(const Match& match) {
  const auto low = bound(match, "a", -infinity), high = bound(match, "b", infinity);
  return low && high && *low >= 0 && *high >= 0;
}

// Returns the branch that a uniform condition selects, expanded to the result's extents. Exported
// attention masks are such conditions.
ValueId selected_branch(const Match& match) {
  const auto condition = uniform_value(match.graph(), match.value("c"));
  if (!condition || !match.root_type().is_tensor()) return {};
  const std::string_view name = *condition != 0 ? "a" : "b";
  const TensorType* branch = match.type(name);
  const Dims& dims = match.root_type().tensor().dims;
  if (!branch) return {};
  if (branch->dims == dims) return match.value(name);
  if (!std::all_of(dims.begin(), dims.end(), is_written_down)) return {};
  return match.make("expand", {match.value(name)}, {{"shape", dims}});
}

bool has_this_dtype(const Match& match) {
  const TensorType* x = match.type("x");
  return x && x->dtype == match.dtype("t");
}

bool is_first_cast_exact(const Match& match) {
  const TensorType* x = match.type("x");
  return x && (holds_exactly(match.dtype("s"), x->dtype) ||
               match.refuse("the first cast may lose digits"));
}

}  // namespace

std::vector<Rule> selection_rules() {
  return {
      {"relu(y: relu(_))", "y"},
      {"relu(y: clip(_, a?, b?))", "y", is_clipped_above_zero},
      {"relu(y: sigmoid/exp/softmax/abs(_) {..})", "y"},
      {"clip(relu(x), a?, b?)", clip_from_zero},
      {"clip(clip(x, a?, b?), c?, d?)", one_clip},
      {"clip(x)", "x"},
      {"where(c, a, b)", selected_branch},
      {"where(expand(c) {..}, a, b)", selected_branch},
      {"where(_, a, a)", "a"},
      {"where(logical_not(c), a, b)", "where(c, b, a)"},
      {"cast(x) {to = t, ..}", "x", has_this_dtype},
      {"cast(cast(x) {to = s}) {to = t}", "cast(x) {to = t}", is_first_cast_exact},
      {.pattern = "identity(x)", .replacement = "x", .holds_for_any_type = true},
      // Inference mode, or a ratio of zero. The rewriter checks whether the mask is read.
      {"dropout(x, _, 0) {..}", "x"},
      {"dropout(x, 0, t?) {..}", "x"},
  };
}

}  // namespace tenon::passes::simplification
