#include "ops/op_spec.h"

#include "base/text.h"
#include "ops/lowering.h"

namespace tenon {

template struct OpSpec<NoAttrs>;

namespace detail {
namespace {

bool may_be_known(const Type& type) {
  if (!type.is_tensor()) return false;
  const TensorType& tensor = type.tensor();
  const bool is_counting = tensor.dtype == DType::I64 || tensor.dtype == DType::I32;
  return is_counting && tensor.rank() <= 1 && all_constant(tensor.dims) &&
         product(tensor.dims).constant() <= 64;
}

// Follows the op's own lowering with dims for elements, so that shape arithmetic stays symbolic.
std::optional<Dims> derived_elements(const OpDef& op, const InferInput& input, std::size_t result,
                                     const std::vector<Type>& types) {
  std::vector<const Dims*> known;
  std::vector<const Tensor*> values;
  std::vector<Type> operands;
  for (std::size_t k = 0; k < input.operands.size(); ++k) {
    const OperandFacts& facts = input.operands[k];
    const bool is_late = k < op.operands.size() && op.operands[k].is_late_attribute;
    if (input.present[k] && !facts.known && !facts.value) return std::nullopt;
    if (is_late && input.present[k] && !facts.value) return std::nullopt;
    known.push_back(facts.known);
    values.push_back(is_late && input.present[k] ? facts.value : nullptr);
    operands.push_back(facts.type);
  }
  const Attributes attrs = bind_late_attributes(op, input.attrs, values);
  const std::vector<Expr> exprs = lower_op(op, attrs, std::move(operands), types);
  return known_elements(exprs[result], known);
}

}  // namespace

InferOutput finish_inference(const OpDef& op, const InferInput& input, const Attributes&,
                             const std::function<ResultTypes(const OperandTypes&)>& rule,
                             const std::function<std::optional<Dims>(const OperandTypes&)>& known) {
  InferOutput output;
  const OperandTypes operands(op, input);
  try {
    output.types = rule(operands);
  } catch (const OperandTypes::NotKnownYet&) {
    output.types.assign(input.result_count, Type{});
    output.known.resize(input.result_count);
    return output;
  }
  TENON_ASSERT(output.types.size() >= input.result_count,
               concat(op.name, " infers a type for each result"));
  output.types.resize(input.result_count);
  output.known.resize(input.result_count);
  for (std::size_t k = 0; k < input.result_count; ++k) {
    if (!may_be_known(output.types[k])) continue;
    if (k == 0) output.known[k] = known(operands);
    if (!output.known[k] && op.lower && !input.operands.empty()) {
      output.known[k] = derived_elements(op, input, k, output.types);
    }
  }
  return output;
}

void check_known_attributes(const OpDef& op, const Attributes& attrs) {
  for (const auto& [name, value] : attrs) {
    if (op.find_attr(name)) continue;
    std::vector<std::string> known;
    for (const AttrDef& attr : op.attrs) known.push_back(attr.name);
    throw Error(concat(op.name, ": unknown attribute '", name, "'")).hint(suggest_name(name, known));
  }
}

}  // namespace detail
}  // namespace tenon
