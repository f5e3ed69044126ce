#include "ops/families/sequences.h"

#include "base/error.h"
#include "ir/node_rules.h"

namespace tenon::inline ops {

Type item_type(std::string_view op, const Type& sequence, const OperandTypes& in) {
  if (!sequence.is_known()) return {};
  if (sequence.kind() != Type::Kind::Sequence) {
    throw Error(concat(op, ": a sequence is needed here")).got(sequence);
  }
  Type item = sequence.element();
  if (!item.is_tensor()) return item;
  for (Dim& dim : item.tensor().dims) {
    // A data-dependent extent may differ between items.
    if (depends_on_data(TensorType{DType::F32, {dim}, {}})) dim = in.unknown();
  }
  return item;
}

Type item_type(const OperandTypes& in, std::string_view operand) {
  return item_type(in.op_name(), in.type(operand), in);
}

const std::vector<Datum>& items_of(const Evaluation& op, std::string_view operand) {
  const Datum& datum = op.datum(operand);
  if (datum.kind() != Type::Kind::Sequence) {
    throw Error(concat(op.op->name, ": operand '", operand, "' must be a sequence"))
        .got(datum.type());
  }
  return datum.items();
}

Datum sequence_of(std::vector<Datum> items, DType dtype) {
  return items.empty() ? Datum::empty_sequence(dtype) : Datum::sequence(std::move(items));
}

std::size_t position_operand(const Evaluation& op, std::size_t item_count,
                             std::size_t default_position, std::int64_t highest) {
  if (!op.has("position")) return default_position;
  const Tensor& tensor = op.tensor("position");
  if (tensor.size() != 1) {
    throw Error(concat(op.op->name, ": the position must be one element")).got(tensor.type());
  }
  const auto count = static_cast<std::int64_t>(item_count);
  const std::int64_t position = tensor.integer_at(0);
  if (position < -count || position > highest) {
    throw Error(concat(op.op->name, ": the position lies outside the sequence"))
        .expected("a position in [", -count, ", ", highest, "]")
        .got(position);
  }
  return static_cast<std::size_t>(position < 0 ? position + count : position);
}

}  // namespace tenon::inline ops
