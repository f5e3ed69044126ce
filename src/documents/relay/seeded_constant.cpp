#include "documents/relay/seeded_constant.h"

#include "base/error.h"
#include "documents/relay/metadata.h"
#include "documents/relay/types.h"
#include "documents/seeded_weight.h"

#include <algorithm>

namespace tenon::documents::relay {
namespace {

constexpr double kScaleDeviation = 0.1;
constexpr double kLeastVariance = 0.5, kGreatestVariance = 1.5;

bool has_unknown_extent(const RelayType& type) {
  return std::find(type.dims.begin(), type.dims.end(), RelayType::kAnyExtent) != type.dims.end();
}

}  // namespace

Constant scalar_value(const RelayExpr& scalar) {
  if (const auto* flag = std::get_if<bool>(&scalar.literal.value))
    return Tensor::scalar(DType::Bool, *flag ? 1 : 0);
  if (const auto* integer = std::get_if<IntegerLiteral>(&scalar.literal.value)) {
    Tensor tensor(to_dtype(integer->dtype).value_or(DType::I32), {});
    tensor.set_integer(0, integer->value);
    return tensor;
  }
  const auto& real = std::get<RealLiteral>(scalar.literal.value);
  return Tensor::scalar(to_dtype(real.dtype).value_or(DType::F32), real.value);
}

Constant constant_value(const RelayModule& module, const RelayExpr& constant,
                        const WeightRole& role) {
  if (module.metadata) {
    if (std::optional<Constant> stored = metadata_constant(*module.metadata, constant.index))
      return *stored;
  }
  if (!constant.type || constant.type->kind != RelayType::Kind::Tensor) {
    throw Error(concat("nothing says what constant ", constant.index, " is"))
        .expected("a comment with its type, or a metadata section");
  }
  if (has_unknown_extent(*constant.type)) {
    throw Error(concat("constant ", constant.index, " has an extent that is not known"));
  }
  const Shape shape = constant.type->dims;
  checked_element_count(shape);
  const DType dtype = to_dtype(constant.type->dtype).value_or(DType::F32);
  const std::string name = concat("relay.Constant ", constant.index);
  const Constant shift = seeded_weight(dtype, shape, name, 0);
  if (!is_float(dtype)) return shift;
  switch (role.kind) {
    case WeightRole::Kind::Shift:
      return shift;
    case WeightRole::Kind::Products:
      return seeded_weight(dtype, shape, name, role.fan_in);
    case WeightRole::Kind::Scale:
      return Constant::normal(dtype, shape, shift.seed(), 1, kScaleDeviation);
    case WeightRole::Kind::Variance:
      break;
  }
  return Constant::uniform(dtype, shape, shift.seed(), kLeastVariance, kGreatestVariance);
}

std::optional<ImportedValue> blank_of(const RelayType& type, Builder& builder) {
  if (type.kind == RelayType::Kind::Tuple) {
    std::vector<ImportedValue> fields;
    for (const RelayType& part : type.parts) {
      std::optional<ImportedValue> field = blank_of(part, builder);
      if (!field) return std::nullopt;
      fields.push_back(std::move(*field));
    }
    return ImportedValue::tuple(std::move(fields));
  }
  if (type.kind != RelayType::Kind::Tensor || has_unknown_extent(type)) return std::nullopt;
  try {
    checked_element_count(type.dims);
    const DType dtype = to_dtype(type.dtype).value_or(DType::F32);
    return ImportedValue(builder.constant(Constant::splat(Tensor::scalar(dtype, 0), type.dims)));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace tenon::documents::relay
