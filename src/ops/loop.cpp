#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"
#include "ops/families/repeated_gradient.h"
#include "ops/families/tensor_parts.h"

namespace tenon::inline ops::loop_op {
namespace {

struct Attrs {
  std::int64_t carried_count = 0;
};

std::size_t carried_of(const Attrs& attrs, std::size_t value_count) {
  if (attrs.carried_count < 0 || attrs.carried_count > static_cast<std::int64_t>(value_count)) {
    throw Error("loop: operands are too few")
        .expected(attrs.carried_count, " carried values")
        .got(value_count, " values");
  }
  return static_cast<std::size_t>(attrs.carried_count);
}

// Returns the iteration count if only the trip count ends the loop.
Dim run_count(const OperandTypes& in) {
  const Dims* trips = in.known("trip_count");
  if (!in.has("trip_count") || in.has("condition") || !trips || trips->size() != 1) {
    return in.unknown();
  }
  return max(trips->front(), Dim(0));
}

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  const std::vector<Type> values = in.variadic_types("values");
  const std::size_t carried_count = carried_of(attrs, values.size());
  const auto captured_begin = values.begin() + attrs.carried_count;
  const std::vector<Type> counters = {TensorType{DType::I64, {}, {}},
                                      TensorType{DType::Bool, {}, {}}};
  const std::vector<Type> captured(captured_begin, values.end());
  if (in.bodies().at(0).outputs().size() != in.result_count() + 1 ||
      in.result_count() < carried_count) {
    throw Error("loop: the body gives another number of outputs than there are results")
        .expected("a condition, ", carried_count, " carried values and ",
                  static_cast<std::int64_t>(in.result_count()) - attrs.carried_count,
                  " values to stack")
        .got(in.bodies().at(0).outputs().size(), " outputs");
  }
  std::vector<Type> results =
      carried_types("loop", in, 0, counters, {values.begin(), captured_begin}, captured, 1);
  std::vector<Type> inputs = counters;
  inputs.insert(inputs.end(), results.begin(), results.end());
  inputs.insert(inputs.end(), captured.begin(), captured.end());
  BodyTypes body("loop", in, 0, inputs);
  const Dim runs = run_count(in);
  for (std::size_t k = carried_count; k < in.result_count(); ++k) {
    results.push_back(stacked_type("loop", body.output(k + 1), 0, runs));
  }
  return results;
}

bool holds(const Tensor& condition) {
  if (condition.size() != 1) {
    throw Error("loop: the condition must be one element").got(condition.type());
  }
  return condition.integer_at(0) != 0;
}

std::int64_t trip_limit(const Evaluation& op) {
  if (!op.has("trip_count")) return std::numeric_limits<std::int64_t>::max();
  const Tensor& count = op.tensor("trip_count");
  if (count.size() != 1) throw Error("loop: the trip count must be one element").got(count.type());
  return count.integer_at(0);
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  std::vector<Datum> values = op.variadic("values");
  const std::size_t carried_count = carried_of(attrs, values.size());
  const std::vector<Datum> captured(values.begin() + attrs.carried_count, values.end());
  std::vector<Datum> carried = std::move(values);
  carried.resize(carried_count);
  std::vector<bool> is_optional;
  for (const Datum& value : carried) is_optional.push_back(value.kind() == Type::Kind::Optional);
  std::vector<std::vector<Tensor>> slices(op.result_count() - carried_count);
  const std::int64_t limit = trip_limit(op);
  const bool is_counted = op.has("trip_count") && !op.has("condition");
  bool goes_on = !op.has("condition") || holds(op.tensor("condition"));
  for (std::int64_t run = 0; run < limit && goes_on; ++run) {
    std::vector<Datum> inputs;
    inputs.emplace_back(Tensor::of<std::int64_t>(DType::I64, {}, {run}));
    inputs.emplace_back(Tensor::of<int>(DType::Bool, {}, {1}));
    for (std::size_t k = 0; k < carried_count; ++k) {
      // A body may unwrap an optional; the next iteration expects an optional again.
      const bool is_bare = is_optional[k] && carried[k].kind() != Type::Kind::Optional;
      inputs.push_back(is_bare ? Datum::optional(carried[k]) : carried[k]);
    }
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    std::vector<Datum> outputs = op.run_body(0, std::move(inputs));
    if (op.has("condition")) goes_on = holds(outputs.at(0).tensor());
    for (std::size_t k = 0; k < carried_count; ++k) carried[k] = std::move(outputs.at(k + 1));
    for (std::size_t k = 0; k < slices.size(); ++k) {
      slices[k].push_back(outputs.at(k + 1 + carried_count).tensor());
      if (run == 0 && is_counted) require_stack_memory(slices[k].front(), limit);
    }
  }
  for (std::size_t k = 0; k < carried_count; ++k) op.set(k, std::move(carried[k]));
  for (std::size_t k = 0; k < slices.size(); ++k) {
    const std::size_t result = carried_count + k;
    op.set(result, slices[k].empty() ? empty_stack(op.result_types[result])
                                     : stack_along("loop", slices[k], 0));
  }
}

void gradient(const Attrs& attrs, Gradient& op) {
  Repetition repetition{
      .leading = {TensorType{DType::I64, {}, {}}, TensorType{DType::Bool, {}, {}}},
      .leading_outputs = 1,
      .first_operand = 2,
      .carried = carried_of(attrs, op.variadic("values").size())};
  repetition.outputs.resize(op.result_count() - repetition.carried);
  add_repeated_gradient(repetition, op);
}

}  // namespace

TENON_DEFINE_OP(loop) = OpSpec<Attrs>{
    .name = "loop",
    .summary =
        "runs the body at most `trip_count` times, and while the condition (if given) holds; "
        "`values` are `carried_count` carried values and what the body reads besides; gives the "
        "last "
        "carried values, then the body's further outputs stacked",
    .operands = {optional("trip_count"), optional("condition"), variadic("values")},
    .results = {variadic("ys")},
    .attrs = {{"carried_count", &Attrs::carried_count}},
    .bodies = {"body"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .fusion = Fusion::Opaque,
    .layout = logical_order(),
    .examples = {"-"},
};

}  // namespace tenon::inline ops::loop_op
