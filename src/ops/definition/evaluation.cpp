#include "ops/definition/evaluation.h"

#include "base/error.h"

namespace tenon::inline ops {

Datum Datum::sequence(std::vector<Datum> items) {
  Datum datum;
  datum.kind_ = Type::Kind::Sequence;
  if (!items.empty() && items.front().is_tensor()) {
    datum.element_dtype_ = items.front().tensor().dtype();
  }
  datum.items_ = std::move(items);
  return datum;
}

Datum Datum::empty_sequence(DType element_dtype) {
  Datum datum = sequence({});
  datum.element_dtype_ = element_dtype;
  return datum;
}

Datum Datum::optional(Datum item) {
  Datum datum;
  datum.items_.push_back(std::move(item));
  return datum;
}

const Tensor& Datum::tensor() const {
  if (!is_tensor()) throw Error("a tensor is needed here").got(type());
  return tensor_;
}

Tensor& Datum::tensor() {
  if (!is_tensor()) throw Error("a tensor is needed here").got(type());
  return tensor_;
}

const std::vector<Datum>& Datum::items() const {
  if (is_tensor()) throw Error("a sequence or optional is needed here").got(type());
  return items_;
}

Type Datum::type() const {
  if (is_tensor()) return tensor_.type();
  const Type element = items_.empty() ? Type{} : items_.front().type();
  return kind_ == Type::Kind::Sequence ? Type::sequence(element) : Type::optional(element);
}

namespace {
std::size_t position(const OpDef& op, std::string_view name) {
  const auto index = op.operand_index(name);
  TENON_ASSERT(index.has_value(), concat(op.name, " has an operand called ", name));
  return *index;
}
}  // namespace

bool Evaluation::has(std::string_view operand) const {
  const std::size_t index = position(*op, operand);
  return index < operands.size() && operands[index].has_value();
}

const Datum& Evaluation::datum(std::string_view operand) const {
  if (!has(operand)) throw Error(concat(op->name, ": operand '", operand, "' is missing"));
  return *operands[position(*op, operand)];
}

const Tensor& Evaluation::tensor(std::string_view operand) const { return datum(operand).tensor(); }

std::vector<Datum> Evaluation::variadic(std::string_view operand) const {
  std::vector<Datum> all;
  for (std::size_t k = position(*op, operand); k < operands.size(); ++k)
    all.push_back(*operands[k]);
  return all;
}

bool Evaluation::wants(std::string_view result) const {
  const auto index = op->result_index(result);
  return index && *index < wanted.size() && wanted[*index];
}

void Evaluation::set(std::string_view result, Datum value) {
  if (wants(result)) set(*op->result_index(result), std::move(value));
}

void Evaluation::set(std::size_t index, Datum value) {
  TENON_ASSERT(index < results.size(), "the result exists");
  results[index] = std::move(value);
}

}  // namespace tenon::inline ops
