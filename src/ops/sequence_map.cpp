#include "ops/definition/op_spec.h"
#include "ops/families/body_types.h"
#include "ops/families/sequences.h"

namespace tenon::inline ops::sequence_map_op {
namespace {

struct Attrs {
  std::int64_t input_count = 1;
};

std::size_t input_count(const Attrs& attrs, std::size_t operand_count) {
  if (attrs.input_count < 1 || attrs.input_count > static_cast<std::int64_t>(operand_count)) {
    throw Error("sequence_map: operands are too few")
        .expected(attrs.input_count, " inputs, at least 1")
        .got(operand_count, " operands");
  }
  return static_cast<std::size_t>(attrs.input_count);
}

ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  std::vector<Type> inputs = in.variadic_types("values");
  const std::size_t count = input_count(attrs, inputs.size());
  for (std::size_t k = 0; k < count; ++k) {
    const bool gives_items = k == 0 || inputs[k].kind() == Type::Kind::Sequence;
    if (gives_items) inputs[k] = item_type("sequence_map", inputs[k], in);
  }
  BodyTypes body("sequence_map", in, 0, inputs);
  if (body.output_count() != in.result_count()) {
    throw Error("sequence_map: the body gives another number of outputs than there are results")
        .expected(in.result_count(), " outputs")
        .got(body.output_count());
  }
  std::vector<Type> results;
  for (Type& item : body.outputs()) results.push_back(Type::sequence(std::move(item)));
  return results;
}

// Returns the element type for an empty result, as far as it is known.
DType item_dtype(const Type& sequence) {
  const bool is_known = sequence.is_known() && sequence.element().is_tensor();
  return is_known ? sequence.element().tensor().dtype : DType::F32;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const std::vector<Datum> values = op.variadic("values");
  const std::size_t count = input_count(attrs, values.size());
  if (values[0].kind() != Type::Kind::Sequence) {
    throw Error("sequence_map: the first input must be a sequence").got(values[0].type());
  }
  const std::size_t item_count = values[0].items().size();
  std::vector<std::vector<Datum>> results(op.result_count());
  for (std::size_t item = 0; item < item_count; ++item) {
    std::vector<Datum> inputs;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (k >= count || values[k].kind() != Type::Kind::Sequence) {
        inputs.push_back(values[k]);
      } else if (values[k].items().size() == item_count) {
        inputs.push_back(values[k].items()[item]);
      } else {
        throw Error("sequence_map: sequences differ in length")
            .expected(item_count, " items")
            .got(values[k].items().size());
      }
    }
    std::vector<Datum> outputs = op.run_body(0, std::move(inputs));
    for (std::size_t k = 0; k < results.size(); ++k) results[k].push_back(std::move(outputs.at(k)));
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    op.set(k, sequence_of(std::move(results[k]), item_dtype(op.result_types[k])));
  }
}

}  // namespace

TENON_DEFINE_OP(sequence_map) = OpSpec<Attrs>{
    .name = "sequence_map",
    .summary =
        "runs the body once for each item of the first of `input_count` inputs (other sequences "
        "among "
        "them go along, tensors stay whole; further values are captured) and collects its outputs",
    .operands = {variadic("values")},
    .results = {variadic("ys")},
    .attrs = {{"input_count", &Attrs::input_count}},
    .bodies = {"body"},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("it reads sequences"),
    .fusion = Fusion::Opaque,
    .layout = logical_order(),
    .examples = {"-"},
};

}  // namespace tenon::inline ops::sequence_map_op
