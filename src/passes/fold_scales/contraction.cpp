#include "passes/fold_scales/contraction.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::scales {
namespace {

constexpr int max_transposes = 4;

bool is_matmul(const Graph& graph, NodeId id) { return graph.op_name(id) == "matmul"; }
bool is_transposed(const Graph& graph, NodeId id) { return graph.op_name(id) == "conv_transpose"; }

// Constant weights, found through transposes that constant folding left because the constant is too
// large.
struct ConstantWeights {
  ValueId constant;
  NodeId reader;
  std::size_t operand = 0;
  std::vector<std::size_t> axes;  // axis of the constant for each axis that the contraction sees
};

std::vector<std::size_t> permutation_of(const Node& transpose, std::size_t rank) {
  std::vector<std::size_t> axes;
  const AttrValue* given = transpose.attrs.find("perm");
  for (std::size_t k = 0; k < rank; ++k) {
    axes.push_back(given ? static_cast<std::size_t>(std::get<Dims>(*given)[k].constant())
                         : rank - 1 - k);
  }
  return axes;
}

std::optional<ConstantWeights> weights_of(const Graph& graph, NodeId id, std::size_t operand,
                                          std::string& why) {
  ConstantWeights weights{graph.node(id).operands[operand], id, operand, {}};
  const TensorType* type = scalable_type(graph, weights.constant);
  if (!type) return {};
  for (std::size_t k = 0; k < type->rank(); ++k) weights.axes.push_back(k);
  for (int step = 0; !graph.constant_of(weights.constant); ++step) {
    const NodeId producer = graph.value(weights.constant).producer;
    const bool is_seen_through =
        producer && step < max_transposes && graph.op_name(producer) == "transpose" &&
        graph.node(producer).operands.size() == 1 && graph.readers(weights.constant).size() == 1 &&
        !graph.is_output(weights.constant);
    if (!is_seen_through) {
      why = "its weights are not constant";
      return {};
    }
    const auto permutation = permutation_of(graph.node(producer), type->rank());
    for (std::size_t& axis : weights.axes) axis = permutation[axis];
    weights.reader = producer;
    weights.operand = 0;
    weights.constant = graph.node(producer).operands[0];
  }
  return weights;
}

WeightChange change_of(const ConstantWeights& weights, ChannelFactors factors) {
  factors.axis = weights.axes[factors.axis];
  if (factors.second) factors.second = weights.axes[*factors.second];
  return {weights.constant, weights.reader, weights.operand, std::move(factors)};
}

// Extent of the weights along an axis that the contraction sees.
std::size_t extent_of(const Graph& graph, const ConstantWeights& weights, std::size_t axis) {
  return static_cast<std::size_t>(graph.constant_of(weights.constant)->shape()[weights.axes[axis]]);
}

std::size_t groups_of(const Graph& graph, NodeId id) {
  const AttrValue* groups = graph.node(id).attrs.find("groups");
  return groups ? static_cast<std::size_t>(std::get<Dim>(*groups).constant()) : 1;
}

// Factors along the input channels of weights with axes O (channels of all groups) and I (channels
// of one group). With several groups, both O and I are needed to find the channel.
ChannelFactors along_inner(const ChannelAffine& affine, std::size_t o, std::size_t i,
                           std::size_t outer, std::size_t inner, std::size_t groups) {
  if (groups == 1) return {i, {}, affine.scales_of(inner)};
  const std::vector<double> scales = affine.scales_of(inner * groups);
  ChannelFactors factors{o, i, {}};
  for (std::size_t k = 0; k < outer; ++k) {
    const auto first = scales.begin() + static_cast<std::ptrdiff_t>(k / (outer / groups) * inner);
    factors.table.insert(factors.table.end(), first, first + static_cast<std::ptrdiff_t>(inner));
  }
  return factors;
}

// Symbolic extents can differ from those of the weights at run time.
bool fits(const ChannelAffine& affine, std::size_t count, std::string& why) {
  if (affine.scale.size() == 1 || affine.scale.size() == count) return true;
  why = "there are not as many scales as channels";
  return false;
}

// `by_outer` says whether the scaled channels are the output channels of the weights.
std::optional<WeightChange> convolution_change(const Graph& graph, NodeId id, bool by_outer,
                                               const ChannelAffine& affine, std::string& why) {
  const std::optional<ConstantWeights> weights = weights_of(graph, id, 1, why);
  if (!weights) return {};
  const TensorType& type = graph.value(graph.node(id).operands[1]).type.tensor();
  const auto o = axis_of(type, 'O', 0), i = axis_of(type, 'I', 1);
  if (!o || !i) {
    why = "the layout of the weights blocks the channels";
    return {};
  }
  const std::size_t outer = extent_of(graph, *weights, *o), inner = extent_of(graph, *weights, *i);
  const std::size_t groups = groups_of(graph, id);
  if (!fits(affine, by_outer ? outer : inner * groups, why)) return {};
  if (by_outer) return change_of(*weights, {*o, {}, affine.scales_of(outer)});
  return change_of(*weights, along_inner(affine, *o, *i, outer, inner, groups));
}

std::size_t rank_of(const Graph& graph, ValueId value) {
  return graph.value(value).type.tensor().rank();
}

std::optional<WeightChange> matmul_change(const Graph& graph, NodeId id, std::size_t operand,
                                          std::size_t axis, const ChannelAffine& affine,
                                          std::string& why) {
  const std::optional<ConstantWeights> weights = weights_of(graph, id, operand, why);
  if (!weights) return {};
  const std::size_t extent = extent_of(graph, *weights, axis);
  if (!fits(affine, extent, why)) return {};
  return change_of(*weights, {axis, {}, affine.scales_of(extent)});
}

bool has_scalable_types(const Graph& graph, NodeId id, std::string& why) {
  const Node& node = graph.node(id);
  const TensorType* result = scalable_type(graph, node.results[0]);
  for (std::size_t k = 0; k < 2; ++k) {
    const TensorType* type = scalable_type(graph, node.operands[k]);
    if (result && type && type->dtype == result->dtype) continue;
    why = "operand and result types differ";
    return false;
  }
  return true;
}

bool has_padding(const Node& node) {
  if (const AttrValue* how = node.attrs.find("auto_pad")) {
    return std::get<std::string>(*how) != "valid";
  }
  const AttrValue* pads = node.attrs.find("pads");
  return pads && std::ranges::any_of(std::get<Dims>(*pads),
                                     [](const Dim& pad) { return !(pad == Dim(0)); });
}

// Returns the reduction axis (K) of a matrix operand; a vector has one axis.
std::size_t inner_axis(std::size_t operand, std::size_t rank) {
  return operand == 0 || rank == 1 ? rank - 1 : rank - 2;
}

}  // namespace

bool is_contraction(const Graph& graph, NodeId id) {
  return graph.op_name(id) == "conv" || is_transposed(graph, id) || is_matmul(graph, id);
}

bool has_bias_operand(const Graph& graph, NodeId id) { return !is_matmul(graph, id); }

std::optional<std::size_t> channel_axis(const Graph& graph, NodeId id) {
  const TensorType& type = graph.value(graph.node(id).results[0]).type.tensor();
  if (!is_matmul(graph, id)) return axis_of(type, 'C', 1);
  return type.rank() == 0 ? std::nullopt : std::optional(type.rank() - 1);
}

std::optional<WeightChange> scale_of_result(const Graph& graph, NodeId id,
                                            const ChannelAffine& affine, std::string& why) {
  if (!has_scalable_types(graph, id, why)) return {};
  const Node& node = graph.node(id);
  if (!is_matmul(graph, id)) {
    const std::optional<std::size_t> channels = channel_axis(graph, id);
    if (!channels || (affine.axis && affine.axis != channels)) {
      why = "the scale does not run along its channels";
      return {};
    }
    return convolution_change(graph, id, !is_transposed(graph, id), affine, why);
  }
  const std::size_t rank = rank_of(graph, node.results[0]);
  const std::size_t a = rank_of(graph, node.operands[0]), b = rank_of(graph, node.operands[1]);
  std::string ignored;
  const bool is_right = weights_of(graph, id, 1, ignored).has_value();
  if (!affine.axis) {
    return is_right ? matmul_change(graph, id, 1, b - 1, affine, why)
                    : matmul_change(graph, id, 0, a - 1, affine, why);
  }
  if (b > 1 && affine.axis == rank - 1) return matmul_change(graph, id, 1, b - 1, affine, why);
  if (a > 1 && affine.axis == rank - (b > 1 ? 2 : 1)) {
    return matmul_change(graph, id, 0, a - 2, affine, why);
  }
  why = "the scale does not run along its rows or columns";
  return {};
}

std::optional<WeightChange> scale_of_operand(const Graph& graph, NodeId id, std::size_t operand,
                                             const ChannelAffine& affine, std::string& why) {
  if (!has_scalable_types(graph, id, why)) return {};
  const TensorType& type = graph.value(graph.node(id).operands[operand]).type.tensor();
  if (is_matmul(graph, id)) {
    if (affine.axis && affine.axis != inner_axis(operand, type.rank())) {
      why = "the scale does not run along the axis it sums over";
      return {};
    }
    const std::size_t other = 1 - operand;
    return matmul_change(graph, id, other,
                         inner_axis(other, rank_of(graph, graph.node(id).operands[other])), affine,
                         why);
  }
  const auto channels = operand == 0 ? axis_of(type, 'C', 1) : std::nullopt;
  if (!channels || (affine.axis && affine.axis != channels)) {
    why = "the scale does not run along its channels";
    return {};
  }
  return convolution_change(graph, id, is_transposed(graph, id), affine, why);
}

std::optional<std::vector<double>> effect_of_shift(const Graph& graph, NodeId id,
                                                   std::size_t operand, const ChannelAffine& affine,
                                                   std::string& why) {
  const bool is_product = is_matmul(graph, id);
  if (operand != 0 || is_transposed(graph, id) || (!is_product && has_padding(graph.node(id)))) {
    why = "zero padding: a shift is not uniform at the border";
    if (operand != 0 || is_transposed(graph, id)) why = "a shift of this operand is not a bias";
    return {};
  }
  // Reduces the weights times the shift of each input channel.
  ChannelAffine as_scale{affine.axis, affine.shift, affine.shift};
  const auto change = scale_of_operand(graph, id, operand, as_scale, why);
  if (!change) return {};
  const Constant& weights = *graph.constant_of(change->constant);
  if (is_product && weights.shape().size() != 2) {
    why = "the weights are not a matrix";
    return {};
  }
  const TensorType& type = graph.value(graph.node(id).operands[1]).type.tensor();
  std::string ignored;
  const std::size_t seen = is_product ? 1 : *axis_of(type, 'O', 0);
  const std::size_t axis = weights_of(graph, id, 1, ignored)->axes[seen];
  const Shape& shape = weights.shape();
  const auto products =
      scaled(Constant(weights.materialise().converted(DType::F64)), change->factors);
  if (!products) {
    why = "a shift times a weight is too large or too small for its type";
    return {};
  }
  std::size_t inner = 1;
  for (std::size_t k = axis + 1; k < shape.size(); ++k) inner *= static_cast<std::size_t>(shape[k]);
  const auto count = static_cast<std::size_t>(shape[axis]);
  std::vector<double> sums(count, 0.0);
  const Tensor terms = products->materialise();
  const std::span<const double> elements = terms.as<double>();
  for (std::size_t k = 0; k < elements.size(); ++k) sums[k / inner % count] += elements[k];
  return sums;
}

}  // namespace tenon::passes::scales
