#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"
#include "ops/definition/plugins.h"

#include <algorithm>

namespace tenon::inline ops::custom_op {
namespace {

struct Attrs {
  std::string op;
  std::string attributes = "{}";
};

const tenon_custom_op& find(const Attrs& attrs) {
  if (const tenon_custom_op* op = find_custom_op(attrs.op)) return *op;
  throw Error(concat("no plug-in has an operator '", attrs.op, "'"), ErrorKind::Unsupported)
      .hint("load the plug-in that has it: --plugin=FILE.so");
}

void require_fine(const Attrs& attrs, const char* problem) {
  if (problem != nullptr) throw Error(concat(attrs.op, ": ", problem));
}

// The ABI numbers element types like DType, starting at 1.
std::int32_t number_of(DType dtype) { return static_cast<std::int32_t>(dtype) + 1; }

tenon_type described(const TensorType& type) {
  tenon_type made{number_of(type.dtype), static_cast<std::int32_t>(type.rank()), {}};
  for (std::size_t axis = 0; axis < type.rank(); ++axis)
    made.shape[axis] = type.dims[axis].constant();
  return made;
}

TensorType read(const Attrs& attrs, const tenon_type& type) {
  const bool is_dtype = type.dtype >= 1 && type.dtype < number_of(DType::String);
  if (!is_dtype || type.rank < 0 || type.rank > TENON_PLUGIN_AXES) {
    throw Error(concat(attrs.op, ": the plug-in gives a type that is none"))
        .got("element type ", type.dtype, ", rank ", type.rank);
  }
  TensorType made{static_cast<DType>(type.dtype - 1), {}, {}};
  for (std::int32_t axis = 0; axis < type.rank; ++axis) {
    if (type.shape[axis] < 0)
      throw Error(concat(attrs.op, ": the plug-in gives a negative extent")).got(type.shape[axis]);
    made.dims.emplace_back(type.shape[axis]);
  }
  return made;
}

std::vector<TensorType> result_types(const Attrs& attrs, const std::vector<TensorType>& operands,
                                     std::size_t count) {
  std::vector<tenon_type> in, out(count);
  for (const TensorType& type : operands) in.push_back(described(type));
  require_fine(attrs, find(attrs).infer(attrs.attributes.c_str(), in.data(), in.size(), out.data(),
                                        out.size()));
  std::vector<TensorType> types;
  for (const tenon_type& type : out) types.push_back(read(attrs, type));
  return types;
}

// With a symbolic extent, the result types are unknown until run time.
ResultTypes infer(const Attrs& attrs, const OperandTypes& in) {
  find(attrs);
  const std::vector<TensorType> operands = in.variadic("xs");
  for (const TensorType& type : operands) {
    if (type.dtype == DType::String)
      throw Error("custom: strings are not given to plug-ins").got(type);
    if (type.rank() > TENON_PLUGIN_AXES)
      throw Error("custom: too many axes for a plug-in").got(type);
    if (!all_constant(type.dims)) return std::vector<Type>(in.result_count());
  }
  std::vector<Type> types;
  for (TensorType& type : result_types(attrs, operands, in.result_count()))
    types.emplace_back(std::move(type));
  return types;
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  std::vector<TensorType> types;
  std::vector<tenon_tensor> in, out;
  const std::vector<Datum> operands = op.variadic("xs");
  for (const Datum& operand : operands) {
    const Tensor& tensor = operand.tensor();
    types.push_back(tensor.type());
    in.push_back({const_cast<std::byte*>(tensor.bytes().data()), tensor.shape().data(),
                  nullptr,  // NOLINT: read only
                  static_cast<std::int32_t>(tensor.rank()), number_of(tensor.dtype())});
  }
  std::vector<Tensor> results;
  for (const TensorType& type : result_types(attrs, types, op.result_count()))
    results.emplace_back(type.dtype, constants(type.dims));
  for (Tensor& result : results) {
    out.push_back({result.mutable_bytes().data(), result.shape().data(), nullptr,
                   static_cast<std::int32_t>(result.rank()), number_of(result.dtype())});
  }
  require_fine(attrs, find(attrs).compute(attrs.attributes.c_str(), in.data(), in.size(),
                                          out.data(), out.size()));
  for (std::size_t k = 0; k < results.size(); ++k) op.set(k, std::move(results[k]));
}

}  // namespace

TENON_DEFINE_OP(custom) = OpSpec<Attrs>{
    .name = "custom",
    .summary = "what operator `op` of a plug-in computes; `attributes` is a JSON object for it",
    .operands = {variadic("xs")},
    .results = {variadic("ys")},
    .attrs = {{"op", &Attrs::op}, {"attributes", &Attrs::attributes}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("a plug-in says nothing of it"),
    .layout = logical_order(),
};

}  // namespace tenon::inline ops::custom_op
