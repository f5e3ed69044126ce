#include "ir/node_rules.h"

#include "base/error.h"
#include "ir/extent_too_large.h"
#include "ir/symbolic_results.h"

#include <algorithm>
#include <deque>

namespace tenon::inline ir {
namespace {

// Shapes, axes, pads and scales are small; weights are large, and types do not depend on them.
constexpr std::int64_t kMaxInferElements = 4096;
// Float operands of shape inference (scales) have at most one element per axis. A larger seeded
// constant is a weight, and generating it is expensive.
constexpr std::int64_t kMaxInferFloats = 16;

bool may_tell_types(const Constant& constant) {
  const bool is_cheap = constant.kind() == Constant::Kind::Splat || !is_float(constant.dtype());
  return constant.size() <= (is_cheap ? kMaxInferElements : kMaxInferFloats);
}

bool may_be_missing(const OpDef& op, const OperandDef& operand, const Attributes& attrs) {
  if (operand.is_variadic) return true;
  if (!operand.is_dynamic_attribute) return operand.is_optional;
  const AttrDef* attr = op.find_attr(operand.name);
  return !attr || !attr->is_required || attrs.find(operand.name);
}

void check_bodies(const OpDef& op, std::size_t body_count) {
  const bool any_number = !op.bodies.empty() && op.bodies.back().ends_with('*');
  const std::size_t named = op.bodies.size() - (any_number ? 1 : 0);
  if (body_count < named) {
    throw Error(concat(op.name, ": body '", op.bodies[body_count], "' is missing"));
  }
  if (body_count > named && !any_number) {
    throw Error(concat(op.name, ": too many bodies")).expected(named).got(body_count);
  }
}

bool is_of_data(const Dim& dim) {
  if (dim.is_constant()) return false;
  SymbolRanges symbols;
  dim.collect_symbols(symbols);
  return std::any_of(symbols.begin(), symbols.end(), [](const auto& symbol) {
    return symbol.first.starts_with('?') || symbol.first.find('#') != std::string::npos;
  });
}

// Memory, loops and costs count elements, so the element count must be representable.
bool has_countable_elements(const InferOutput& output) {
  try {
    for (const Type& type : output.types) {
      if (type.is_tensor() && !all_constant(type.tensor().dims)) product(type.tensor().dims);
    }
    return true;
  } catch (const ExtentTooLarge&) {
    return false;
  }
}

InferOutput inferred(const OpDef& op, const InferInput& input) {
  try {
    InferOutput output = op.infer(input);
    if (has_countable_elements(output)) return output;
    return infer_symbolic(op, input).value_or(std::move(output));
  } catch (const ExtentTooLarge&) {
    if (std::optional<InferOutput> symbolic = infer_symbolic(op, input))
      return *std::move(symbolic);
    throw;
  }
}

bool dims_agree(const Dim& declared, const Dim& inferred) {
  if (declared == inferred) return true;
  return (is_of_data(declared) || is_of_data(inferred)) && !provably_different(declared, inferred);
}

}  // namespace

void check_fit(const OpDef& op, const std::vector<ValueId>& operands, const Attributes& attrs,
               std::size_t body_count) {
  const bool any_number = !op.operands.empty() && op.operands.back().is_variadic;
  if (operands.size() > op.operands.size() && !any_number) {
    throw Error(concat(op.name, ": too many operands"))
        .expected("at most ", op.operands.size())
        .got(operands.size());
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const OperandDef& operand = op.operands[i];
    const bool is_present = i < operands.size() && operands[i];
    if (!is_present && !may_be_missing(op, operand, attrs)) {
      throw Error(concat(op.name, ": operand '", operand.name, "' is missing"));
    }
    if (is_present && operand.is_dynamic_attribute && attrs.find(operand.name)) {
      throw Error(concat(op.name, ": '", operand.name, "' is given twice"))
          .expected("an attribute or an operand")
          .got("both");
    }
  }
  for (std::size_t i = op.operands.empty() ? 0 : op.operands.size() - 1; i < operands.size(); ++i) {
    if (any_number && !operands[i]) {
      throw Error(concat(op.name, ": one of '", op.operands.back().name, "' is missing"));
    }
  }
  check_bodies(op, body_count);
}

std::size_t inferred_count(const OpDef& op, std::size_t listed) {
  const bool any_number = !op.results.empty() && op.results.back().is_variadic;
  return std::max(listed, op.results.size() - (any_number ? 1 : 0));
}

InferOutput infer_results(const Graph& graph, const OpDef& op, const std::vector<ValueId>& operands,
                          const Attributes& attrs, const std::vector<Graph>& bodies,
                          std::size_t result_count) {
  const bool any_number = !op.operands.empty() && op.operands.back().is_variadic;
  const std::size_t count = std::max(operands.size(), op.operands.size() - (any_number ? 1 : 0));
  std::vector<OperandFacts> facts(count);
  std::vector<bool> present(count, false);
  std::deque<Tensor> made;  // elements that the constant does not store
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ValueId id = operands[i];
    if (!id) continue;
    present[i] = true;
    facts[i].type = graph.value(id).type;
    facts[i].known = graph.known_elements(id);
    if (const Constant* constant = graph.constant_of(id)) {
      if (constant->kind() == Constant::Kind::Dense) {
        facts[i].value = &constant->stored();
      } else if (may_tell_types(*constant)) {
        facts[i].value = &made.emplace_back(constant->materialise());
      }
    }
  }
  InferOutput output;
  if (op.infer) output = inferred(op, InferInput{attrs, facts, present, bodies, result_count});
  output.types.resize(std::max(output.types.size(), result_count));
  output.known.resize(output.types.size());
  return output;
}

bool types_agree(const Type& declared, const Type& inferred) {
  if (!declared.is_known() || !inferred.is_known()) return true;
  if (declared.kind() != inferred.kind()) return false;
  if (!declared.is_tensor()) return types_agree(declared.element(), inferred.element());
  const TensorType& a = declared.tensor();
  const TensorType& b = inferred.tensor();
  return a.dtype == b.dtype && (a.layout == b.layout || b.layout.is_empty()) &&
         std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end(), dims_agree);
}

bool depends_on_data(const Type& type) {
  if (!type.is_known()) return true;
  if (!type.is_tensor()) return depends_on_data(type.element());
  const Dims& dims = type.tensor().dims;
  return std::any_of(dims.begin(), dims.end(), is_of_data);
}

void collect_symbols(const Type& type, SymbolRanges& symbols) {
  if (!type.is_known()) return;
  if (!type.is_tensor()) return collect_symbols(type.element(), symbols);
  for (const Dim& dim : type.tensor().dims) {
    if (!dim.is_constant()) dim.collect_symbols(symbols);
  }
}

std::string node_location(const OpDef& op, std::string_view name) {
  return name.empty() ? concat("node (", op.name, ")")
                      : concat("node '", name, "' (", op.name, ")");
}

}  // namespace tenon::inline ir
