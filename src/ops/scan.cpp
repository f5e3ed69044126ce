#include "ir/assumptions.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"
#include "ops/families/repeated_gradient.h"
#include "ops/families/tensor_parts.h"

namespace tenon::inline ops::scan_op {
namespace {

using Integers = std::vector<std::int64_t>;

struct Attrs {
  std::int64_t state_count = 0;
  std::int64_t input_count = 1;
  // One entry per scanned input or output; missing ones are 0.
  Integers input_axes, input_reverse, output_axes, output_reverse;
};

std::int64_t entry(const Integers& list, std::size_t position) {
  return position < list.size() ? list[position] : 0;
}

// Starts of the parts of the operand list.
struct OperandSplit {
  std::size_t states, inputs;
};

OperandSplit parts_of(const Attrs& attrs, std::size_t operand_count) {
  const auto count = static_cast<std::int64_t>(operand_count);
  if (attrs.state_count < 0 || attrs.input_count < 1 || attrs.input_count > count ||
      attrs.state_count > count - attrs.input_count) {
    throw Error("scan: operands are too few")
        .expected(attrs.state_count, " states and ", attrs.input_count,
                  " scanned inputs, at least 1")
        .got(operand_count, " operands");
  }
  return {static_cast<std::size_t>(attrs.state_count), static_cast<std::size_t>(attrs.input_count)};
}

[[noreturn]] void refuse_lengths() {
  throw Error("scan: scanned inputs differ in length")
      .expected("one extent along the scanned axes");
}

// Returns the type of one step of a scanned input, and records the number of steps.
Type step_type(const Type& input, std::int64_t axis, std::optional<Dim>& steps) {
  if (!input.is_known()) return {};
  if (!input.is_tensor()) throw Error("scan: a scanned input must be a tensor").got(input);
  TensorType step{input.tensor().dtype, input.tensor().dims, {}};
  const std::size_t position = normal_axis("scan", axis, step.rank());
  const Dim extent = step.dims[position];
  if (steps && !assume_equal(*steps, extent)) refuse_lengths();
  if (!steps || extent.is_constant()) steps = extent;
  step.dims.erase(step.dims.begin() + static_cast<std::ptrdiff_t>(position));
  return step;
}

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  std::vector<Type> inputs = in.variadic_types("values");
  const OperandSplit parts = parts_of(attrs, inputs.size());
  std::optional<Dim> steps;
  for (std::size_t k = 0; k < parts.inputs; ++k) {
    Type& input = inputs[parts.states + k];
    input = step_type(input, entry(attrs.input_axes, k), steps);
  }
  if (!steps) steps = in.unknown();
  BodyTypes body("scan", in, 0, inputs);
  std::vector<Type> results = body.outputs();
  if (results.size() < parts.states || results.size() != in.result_count()) {
    throw Error("scan: the body gives another number of outputs than there are results")
        .expected(in.result_count(), " outputs, of which ", parts.states, " are states")
        .got(results.size(), " outputs");
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (k >= parts.states) {
      results[k] =
          stacked_type("scan", results[k], entry(attrs.output_axes, k - parts.states), *steps);
    } else if (inputs[k].is_known()) {
      join_types("scan", inputs[k], results[k], in);
      results[k] = inputs[k];  // a state keeps its shape from step to step
    }
  }
  return results;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const std::vector<Datum> values = op.variadic("values");
  const OperandSplit parts = parts_of(attrs, values.size());
  std::vector<std::size_t> axes;
  std::int64_t steps = 0;
  for (std::size_t k = 0; k < parts.inputs; ++k) {
    const Tensor& input = values[parts.states + k].tensor();
    axes.push_back(normal_axis("scan", entry(attrs.input_axes, k), input.rank()));
    const std::int64_t extent = input.shape()[axes.back()];
    if (k > 0 && extent != steps) refuse_lengths();
    steps = extent;
  }
  const auto first_input = values.begin() + static_cast<std::ptrdiff_t>(parts.states);
  std::vector<Datum> states(values.begin(), first_input);
  std::vector<std::vector<Tensor>> slices(op.result_count() - parts.states);
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<Datum> inputs = std::move(states);
    for (std::size_t k = 0; k < parts.inputs; ++k) {
      const std::int64_t position = entry(attrs.input_reverse, k) ? steps - 1 - step : step;
      inputs.emplace_back(slice_at(values[parts.states + k].tensor(), axes[k], position));
    }
    inputs.insert(inputs.end(), first_input + static_cast<std::ptrdiff_t>(parts.inputs),
                  values.end());
    std::vector<Datum> outputs = op.run_body(0, std::move(inputs));
    for (std::size_t k = 0; k < slices.size(); ++k) {
      slices[k].push_back(outputs.at(parts.states + k).tensor());
      if (step == 0) require_stack_memory(slices[k].front(), steps);
    }
    outputs.resize(parts.states);
    states = std::move(outputs);
  }
  for (std::size_t k = 0; k < parts.states; ++k) op.set(k, std::move(states[k]));
  for (std::size_t k = 0; k < slices.size(); ++k) {
    const std::size_t result = parts.states + k;
    if (entry(attrs.output_reverse, k)) std::reverse(slices[k].begin(), slices[k].end());
    if (slices[k].empty()) {
      op.set(result, empty_stack(op.result_types[result]));
    } else {
      const std::size_t rank = slices[k].front().rank() + 1;
      op.set(result, stack_along("scan", slices[k],
                                 normal_axis("scan", entry(attrs.output_axes, k), rank)));
    }
  }
}

void gradient(const Attrs& attrs, Gradient& op) {
  const OperandSplit parts = parts_of(attrs, op.variadic("values").size());
  Repetition repetition{.carried = parts.states};
  for (std::size_t k = 0; k < parts.inputs; ++k) {
    repetition.inputs.push_back({entry(attrs.input_axes, k), entry(attrs.input_reverse, k) != 0});
  }
  for (std::size_t k = 0; k < op.result_count() - parts.states; ++k) {
    repetition.outputs.push_back(
        {entry(attrs.output_axes, k), entry(attrs.output_reverse, k) != 0});
  }
  add_repeated_gradient(repetition, op);
}

}  // namespace

TENON_DEFINE_OP(scan) = OpSpec<Attrs>{
    .name = "scan",
    .summary =
        "runs the body once for each position along an axis of the scanned inputs; `values` are "
        "`state_count` states, `input_count` scanned inputs and what the body reads besides; gives "
        "the last states, then the body's further outputs stacked",
    .operands = {variadic("values")},
    .results = {variadic("ys")},
    .attrs = {{"state_count", &Attrs::state_count},
              {"input_count", &Attrs::input_count},
              {"input_axes", &Attrs::input_axes},
              {"input_reverse", &Attrs::input_reverse},
              {"output_axes", &Attrs::output_axes},
              {"output_reverse", &Attrs::output_reverse}},
    .bodies = {"body"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = gradient,
    .fusion = Fusion::Opaque,
    .layout = logical_order(),
    .examples = {"-"},
};

}  // namespace tenon::inline ops::scan_op
