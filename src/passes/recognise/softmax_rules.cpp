#include "passes/recognise/rules.h"
#include "passes/rewrite/facts.h"

namespace tenon::passes::recognition {

using namespace rewrite;

namespace {

// Requires both reductions to reduce the same single axis.
bool is_one_axis(const Match& match) {
  const TensorType* x = match.type("x");
  if (!x || !is_common_float("x")(match)) return false;
  const auto a = counted_axes(match.dims("a"), x->rank()),
             b = counted_axes(match.dims("b"), x->rank());
  if (!a || !b || a->size() != 1 || *a != *b) return match.refuse("it goes over several axes");
  // Counts the axis from the end, so that the last axis is the default.
  match.set("axis", Dim(a->front() - static_cast<std::int64_t>(x->rank())));
  return match.is_alone();
}

}  // namespace

std::vector<Rule> softmax_rules() {
  const std::string below_peak = "sub(x, reduce_max(x) {axes = a})";
  return {
      {"quotient(e: exp(" + below_peak + "), reduce_sum(e) {axes = b})", "softmax(x) {axis = axis}",
       is_one_axis},
      {"sub(d: " + below_peak + ", log(reduce_sum(exp(d)) {axes = b}))",
       "log_softmax(x) {axis = axis}", is_one_axis},
      {"sub(d: " + below_peak + ", reduce_log_sum(exp(d)) {axes = b})",
       "log_softmax(x) {axis = axis}", is_one_axis},
  };
}

}  // namespace tenon::passes::recognition
