#include "passes/fold_scales/affine.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::scales {
namespace {

std::vector<double> repeated(const std::vector<double>& numbers, std::size_t count) {
  return numbers.size() == count ? numbers : std::vector<double>(count, numbers.front());
}

// Only small constants: larger ones are not per-channel.
std::vector<double> numbers_of(const Constant& constant) {
  if (constant.kind() == Constant::Kind::Splat) return {constant.stored().real_at(0)};
  return constant.materialise().reals();
}

std::optional<ScaleSource> of_product(const Graph& graph, const Node& node, std::string& why,
                                      bool is_quotient) {
  const bool is_left = graph.constant_of(node.operands[0]) != nullptr;
  const std::size_t data = is_left ? 1 : 0;
  const Constant* constant = graph.constant_of(node.operands[1 - data]);
  if (!constant || graph.constant_of(node.operands[data]) || (is_quotient && is_left)) return {};
  const TensorType* type = scalable_type(graph, node.operands[data]);
  if (!type) return {};
  std::optional<Channels> factor = channels_of(*constant, *type);
  if (!factor) {
    why = "the factor varies along more than one axis";
    return {};
  }
  if (is_quotient) {
    for (double& number : factor->numbers) number = 1 / number;
  }
  return ScaleSource{data, {factor->axis, factor->numbers, repeated({0}, factor->numbers.size())}};
}

std::optional<ScaleSource> of_sum(const Graph& graph, const Node& node, std::string& why,
                                  bool is_difference) {
  const bool is_left = graph.constant_of(node.operands[0]) != nullptr;
  const std::size_t data = is_left ? 1 : 0;
  const Constant* constant = graph.constant_of(node.operands[1 - data]);
  if (!constant || graph.constant_of(node.operands[data])) return {};
  const TensorType* type = scalable_type(graph, node.operands[data]);
  if (!type) return {};
  std::optional<Channels> term = channels_of(*constant, *type);
  if (!term) {
    why = "the term varies along more than one axis";
    return {};
  }
  const double sign = is_difference && is_left ? -1 : 1;
  if (is_difference && !is_left) {
    for (double& number : term->numbers) number = -number;
  }
  return ScaleSource{data, {term->axis, repeated({sign}, term->numbers.size()), term->numbers}};
}

std::optional<ScaleSource> of_batch_norm(const Graph& graph, const Node& node, std::string& why) {
  const TensorType* type = scalable_type(graph, node.operands[0]);
  if (!type) return {};
  std::vector<std::vector<double>> statistics;
  for (std::size_t k = 1; k < 5; ++k) {
    const Constant* constant = graph.constant_of(node.operands[k]);
    if (!constant || constant->size() == 0) {
      why = "its statistics are not constant";
      return {};
    }
    statistics.push_back(numbers_of(*constant));
  }
  const AttrValue* given = node.attrs.find("axis");
  std::int64_t axis = given ? std::get<Dim>(*given).constant() : 1;
  if (axis < 0) axis += static_cast<std::int64_t>(type->rank());
  const AttrValue* epsilon_given = node.attrs.find("epsilon");
  const double epsilon = epsilon_given ? std::get<double>(*epsilon_given) : 1e-5;
  std::size_t count = 0;
  for (const auto& numbers : statistics) count = std::max(count, numbers.size());
  for (auto& numbers : statistics) numbers = repeated(numbers, count);
  ChannelAffine affine;
  // A constant of equal elements does not determine the axis.
  if (count > 1) affine.axis = static_cast<std::size_t>(axis);
  for (std::size_t k = 0; k < count; ++k) {
    affine.scale.push_back(statistics[0][k] / std::sqrt(statistics[3][k] + epsilon));
    affine.shift.push_back(statistics[1][k] - statistics[2][k] * affine.scale.back());
  }
  return ScaleSource{0, std::move(affine)};
}

}  // namespace

bool ChannelAffine::scales() const {
  return std::ranges::any_of(scale, [](double number) { return number != 1; });
}
bool ChannelAffine::shifts() const {
  return std::ranges::any_of(shift, [](double number) { return number != 0; });
}
bool ChannelAffine::is_positive() const {
  return std::ranges::all_of(scale, [](double number) { return number > 0; });
}
bool ChannelAffine::is_finite() const {
  const auto finite = [](double number) { return std::isfinite(number); };
  return std::ranges::all_of(scale, finite) && std::ranges::all_of(shift, finite);
}
ChannelAffine ChannelAffine::scale_only() const {
  return {axis, scale, std::vector<double>(scale.size(), 0.0)};
}
std::vector<double> ChannelAffine::scales_of(std::size_t count) const {
  return repeated(scale, count);
}
std::vector<double> ChannelAffine::shifts_of(std::size_t count) const {
  return repeated(shift, count);
}

std::optional<Channels> channels_of(const Constant& constant, const TensorType& tensor) {
  const Shape& shape = constant.shape();
  if (shape.size() > tensor.rank() || constant.size() == 0) return {};
  if (constant.kind() == Constant::Kind::Splat) return Channels{{}, numbers_of(constant)};
  Channels channels;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    if (shape[k] == 1) continue;
    const std::size_t axis = tensor.rank() - shape.size() + k;
    if (channels.axis || !(tensor.dims[axis] == Dim(shape[k]))) return {};
    channels.axis = axis;
  }
  channels.numbers = numbers_of(constant);
  return channels;
}

std::optional<ChannelAffine> pair_up(const Channels& scale, const Channels& shift) {
  if (scale.axis && shift.axis && scale.axis != shift.axis) return {};
  const std::size_t count = std::max(scale.numbers.size(), shift.numbers.size());
  return ChannelAffine{scale.axis ? scale.axis : shift.axis, repeated(scale.numbers, count),
                       repeated(shift.numbers, count)};
}

Tensor broadcast_tensor(const Channels& channels, std::size_t rank, DType dtype) {
  Shape shape;
  if (channels.axis) {
    shape.assign(rank - *channels.axis, 1);
    shape.front() = static_cast<std::int64_t>(channels.numbers.size());
  }
  return Tensor::of(dtype, std::move(shape), channels.numbers);
}

std::optional<ScaleSource> source_of(const Graph& graph, NodeId id, std::string& why) {
  const Node& node = graph.node(id);
  const std::string& op = node.op->name;
  std::optional<ScaleSource> source;
  if (op == "mul" || op == "div") {
    source = of_product(graph, node, why, op == "div");
  } else if (op == "add" || op == "sub") {
    source = of_sum(graph, node, why, op == "sub");
  } else if (op == "batch_norm") {
    source = of_batch_norm(graph, node, why);
  } else if (op == "batch_norm_training") {
    why = "batch statistics are not constant";
  } else if (op == "neg" && scalable_type(graph, node.operands[0])) {
    source = ScaleSource{0, {{}, {-1}, {0}}};
  }
  if (!source) return {};
  if (!source->affine.is_finite()) {
    why = "a scale or shift is not finite";
    return {};
  }
  // A constant that broadcasts the value does more than scale it.
  if (!(graph.value(node.operands[source->operand]).type == graph.value(node.results[0]).type)) {
    why = "its result has another type or more elements than its operand";
    return {};
  }
  return source;
}

bool is_scalable(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::F16 || dtype == DType::BF16;
}

std::optional<std::size_t> axis_of(const TensorType& type, char letter, std::size_t otherwise) {
  if (type.layout.is_empty()) return otherwise;
  if (type.layout.block(letter) != 1) return {};
  return type.layout.axis(letter);
}

const TensorType* scalable_type(const Graph& graph, ValueId value) {
  if (!value) return nullptr;
  const Type& type = graph.value(value).type;
  return type.is_tensor() && is_scalable(type.tensor().dtype) ? &type.tensor() : nullptr;
}

}  // namespace tenon::passes::scales
