#include "passes/lower_qdq/parameters.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace tenon::passes::qdq {
namespace {

std::int64_t integer_attr(const Node& node, std::string_view name, std::int64_t otherwise) {
  const AttrValue* value = node.attrs.find(name);
  const Dim* dim = value ? std::get_if<Dim>(value) : nullptr;
  return dim && dim->is_constant() ? dim->constant() : otherwise;
}

}  // namespace

std::optional<Parameters> parameters_of(const Graph& graph, const Node& node) {
  const Constant* scale = node.operands.size() > 1 ? graph.constant_of(node.operands[1]) : nullptr;
  const Type& type = graph.value(node.operands[0]).type;
  constexpr std::int64_t kMostParameters = 1 << 20;
  if (!scale || scale->dtype() != DType::F32 || scale->shape().size() > 1 || !type.is_tensor())
    return std::nullopt;
  if (integer_attr(node, "block_size", 0) != 0 || scale->size() < 1 ||
      scale->size() > kMostParameters)
    return std::nullopt;
  Parameters made;
  const Tensor scales = scale->materialise();
  made.scales.assign(scales.as<float>().begin(), scales.as<float>().end());
  made.zero_points.assign(1, 0);
  if (node.operands.size() > 2 && node.operands[2]) {
    const Constant* zero = graph.constant_of(node.operands[2]);
    if (!zero || zero->size() < 1 || zero->size() > kMostParameters || !is_integer(zero->dtype()))
      return std::nullopt;
    made.zero_points = zero->materialise().integers();
  }
  // Equal parameters collapse to one, for any axis.
  if (std::ranges::all_of(made.zero_points,
                          [&](std::int64_t zero) { return zero == made.zero_points.front(); })) {
    made.zero_points.resize(1);
  }
  if (made.scales.size() > 1 || made.zero_points.size() > 1) {
    const auto rank = static_cast<std::int64_t>(type.tensor().rank());
    made.axis = integer_attr(node, "axis", 1);
    if (made.axis < 0) made.axis += rank;
  }
  return made;
}

std::optional<Tensor> integers_of(const Graph& graph, ValueId value) {
  if (!value) return std::nullopt;
  if (const Constant* constant = graph.constant_of(value)) {
    if (!is_integer(constant->dtype())) return std::nullopt;
    return constant->materialise();
  }
  const NodeId producer = graph.value(value).producer;
  if (!producer || !graph.value(value).type.is_tensor()) return std::nullopt;
  const Node& node = graph.node(producer);
  const TensorType& type = graph.value(value).type.tensor();
  if (node.op->name != "cast" && node.op->name != "reshape") return std::nullopt;
  const std::optional<Tensor> inner = integers_of(graph, node.operands.front());
  if (!inner || !is_integer(type.dtype)) return std::nullopt;
  Shape shape;
  for (const Dim& dim : type.dims) {
    if (!dim.is_constant()) return std::nullopt;
    shape.push_back(dim.constant());
  }
  return (inner->dtype() == type.dtype ? *inner : inner->converted(type.dtype))
      .reshaped(std::move(shape));
}

std::optional<CentredWeights> centred_weights(const Tensor& stored,
                                              const std::vector<std::int64_t>& zero_points,
                                              std::size_t outputs) {
  const Shape& shape = stored.shape();
  if (outputs >= shape.size() || stored.size() == 0) return std::nullopt;
  std::int64_t inner = 1;
  for (std::size_t axis = outputs + 1; axis < shape.size(); ++axis) inner *= shape[axis];
  const std::int64_t count = shape[outputs];
  if (zero_points.size() != 1 && static_cast<std::int64_t>(zero_points.size()) != count)
    return std::nullopt;
  CentredWeights made{Tensor(DType::I8, shape),
                      std::vector<std::int64_t>(static_cast<std::size_t>(count)),
                      std::vector<std::int64_t>(static_cast<std::size_t>(count))};
  const std::span<std::int8_t> values = made.values.as_mutable<std::int8_t>();
  const bool is_signed = stored.dtype() == DType::I8;
  if (!is_signed && stored.dtype() != DType::U8) return std::nullopt;
  const std::byte* bytes = stored.bytes().data();
  for (std::int64_t k = 0; k < stored.size(); ++k) {
    const auto output = static_cast<std::size_t>(k / inner % count);
    const auto byte = std::to_integer<std::uint8_t>(bytes[k]);
    const std::int64_t value =
        (is_signed ? std::int64_t{static_cast<std::int8_t>(byte)} : std::int64_t{byte}) -
        zero_points[zero_points.size() == 1 ? 0 : output];
    if (value < -128 || value > 127) return std::nullopt;
    values[static_cast<std::size_t>(k)] = static_cast<std::int8_t>(value);
    made.sums[output] += value;
    made.magnitudes[output] += std::abs(value);
  }
  return made;
}

bool sums_fit(const CentredWeights& weights, const std::vector<std::int64_t>& added) {
  for (std::size_t k = 0; k < weights.magnitudes.size(); ++k) {
    const std::int64_t more = added.empty() ? 0 : std::abs(added[k]);
    if (255 * weights.magnitudes[k] + more > std::numeric_limits<std::int32_t>::max()) return false;
  }
  return true;
}

Tensor tensor_of(const std::vector<float>& numbers) {
  Tensor made(DType::F32,
              numbers.size() == 1 ? Shape{} : Shape{static_cast<std::int64_t>(numbers.size())});
  std::ranges::copy(numbers, made.as_mutable<float>().begin());
  return made;
}

Tensor tensor_of(const std::vector<std::int64_t>& numbers) {
  return Tensor::of(DType::I32, {static_cast<std::int64_t>(numbers.size())}, numbers);
}

}  // namespace tenon::passes::qdq
