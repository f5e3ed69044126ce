#include "passes/fold_scales/plan.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/analysis.h"
#include "expr/homogeneous.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cmath>

namespace tenon::passes::scales {
namespace {

ValueId new_constant(Graph& graph, NodeId before, const Constant& value, std::string_view name) {
  Graph::NewNode node;
  node.results = {graph.free_name(name)};
  node.op = &find_op("constant");
  node.attrs.set("value", value);
  return graph.node(graph.add_node(std::move(node), before)).results.front();
}

std::string bias_name(const Graph& graph, NodeId id) {
  return concat(graph.value(graph.node(id).results[0]).name, "_bias");
}

std::size_t place_of(const Node& node, ValueId value) {
  return static_cast<std::size_t>(std::ranges::find(node.operands, value) - node.operands.begin());
}

double sign_of(const Graph& graph, NodeId sum, std::size_t operand) {
  return graph.op_name(sum) == "sub" && operand == 1 ? -1 : 1;
}

bool is_sum(const Graph& graph, NodeId id) {
  return graph.op_name(id) == "add" || graph.op_name(id) == "sub";
}

// Returns whether f(s x) = s f(x) for every s > 0, derived from the node's expressions.
bool is_homogeneous(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!node.bodies.empty() || node.results.size() != 1 || node.op->is_random) return false;
  if (node.op->layout.kind == LayoutRule::Kind::LogicalOrder || node.operands.empty()) return false;
  // A value that is read twice would be scaled twice.
  if (std::ranges::count(node.operands, node.operands.front()) > 1) return false;
  try {
    const std::vector<Expr> exprs = lowered(graph, id);
    return exprs.size() == 1 && exprs.front().is_defined() &&
           tenon::is_homogeneous(exprs.front(), 0);
  } catch (const Error&) {
    return false;
  }
}

bool is_pool(const Graph& graph, NodeId id) {
  return graph.op_name(id) == "max_pool" || graph.op_name(id) == "average_pool";
}

bool fits(const Tensor& numbers) {
  for (std::int64_t k = 0; k < numbers.size(); ++k) {
    if (!std::isfinite(numbers.real_at(k))) return false;
  }
  return true;
}

}  // namespace

bool ScalePlan::refuse(std::string why) {
  why_ = std::move(why);
  return false;
}

bool ScalePlan::refuse(NodeId node, std::string_view why) {
  return refuse(concat(graph_.op_name(node), " '", graph_.value(graph_.node(node).results[0]).name,
                       "': ", why));
}

bool ScalePlan::spend_step() {
  if (steps_left_-- > 0) return true;
  return refuse("search limit reached before the weights");
}

// Discards the changes of the first alternative if it fails.
bool ScalePlan::either(const std::function<bool()>& first, const std::function<bool()>& second) {
  const std::size_t changes = changes_.size(), takers = takers_.size();
  if (first()) return true;
  changes_.resize(changes, Bypass{});
  takers_.resize(takers);
  return second();
}

bool ScalePlan::homogeneous_passes(NodeId node, const ChannelAffine& affine) {
  if (affine.shifts()) return refuse(node, "a shift cannot pass it");
  // Zero does not qualify: infinity times zero is NaN on one side and zero on the other.
  if (!affine.is_positive()) return refuse(node, "only scales above zero can pass it");
  return true;
}

bool ScalePlan::pool_passes(NodeId id, const ChannelAffine& affine) {
  const Node& node = graph_.node(id);
  const TensorType* from = scalable_type(graph_, node.operands[0]);
  const TensorType* to = scalable_type(graph_, node.results[0]);
  if (!from || !to || !(from->layout == to->layout)) return refuse(id, "it changes the layout");
  if (affine.axis && affine.axis != axis_of(*to, 'C', 1)) {
    return refuse(id, "the scale does not run along its channels");
  }
  const bool is_greatest = graph_.op_name(id) == "max_pool";
  if (is_greatest && (node.results.size() > 1 && node.results[1])) {
    return refuse(id, "it gives positions too");
  }
  if (is_greatest && !affine.is_positive()) return refuse(id, "only scales above zero can pass it");
  if (!is_greatest && affine.shifts()) return refuse(id, "a shift cannot pass it");
  return true;
}

bool ScalePlan::push_back(ValueId value, const ChannelAffine& affine) {
  if (!spend_step()) return false;
  const std::string& name = graph_.value(value).name;
  const NodeId producer = graph_.value(value).producer;
  if (!producer) return refuse(concat("'", name, "' is an input"));
  if (graph_.is_output(value)) return refuse(concat("'", name, "' is an output of the graph"));
  if (graph_.readers(value).size() != 1) return refuse(concat("'", name, "' has other readers"));
  if (is_contraction(graph_, producer)) return into_contraction(producer, affine);
  if (is_sum(graph_, producer)) return into_sum(producer, affine);
  const Node& node = graph_.node(producer);
  if (is_homogeneous(graph_, producer) || is_pool(graph_, producer)) {
    const bool passes = is_pool(graph_, producer) ? pool_passes(producer, affine)
                                                  : homogeneous_passes(producer, affine);
    if (!passes) return false;
    const bool keeps_type = is_pool(graph_, producer) ||
                            graph_.value(node.operands[0]).type == graph_.value(value).type;
    if (!keeps_type) return refuse(producer, "it widens its operand");
    return push_back(node.operands[0], affine);
  }
  return refuse(producer, "it has no weights to fold the scale into");
}

bool ScalePlan::add_shift(NodeId id, const std::vector<double>& scale,
                          const std::vector<double>& shift) {
  const Node& node = graph_.node(id);
  const DType dtype = graph_.value(node.results[0]).type.tensor().dtype;
  std::vector<double> numbers = shift;
  if (has_bias_operand(graph_, id) && node.operands.size() > 2 && node.operands[2]) {
    const Constant* bias = graph_.constant_of(node.operands[2]);
    if (!bias) return refuse(id, "its bias is not constant");
    const std::vector<double> before = bias->materialise().reals();
    if (before.size() != numbers.size()) return refuse(id, "its bias has another length");
    for (std::size_t k = 0; k < numbers.size(); ++k) numbers[k] += before[k] * scale[k];
  } else if (std::ranges::all_of(shift, [](double number) { return number == 0; })) {
    return true;
  }
  const auto count = static_cast<std::int64_t>(numbers.size());
  Tensor value = Tensor::of(dtype, Shape{count}, numbers);
  if (!fits(value)) return refuse(id, "its bias would be infinite");
  if (has_bias_operand(graph_, id)) {
    changes_.emplace_back(NewOperand{id, 2, std::move(value)});
  } else {
    changes_.emplace_back(NewShift{id, std::move(value)});
  }
  return true;
}

bool ScalePlan::may_copy(NodeId id, const WeightChange& change) {
  const Constant& weights = *graph_.constant_of(change.constant);
  const bool is_copied =
      graph_.readers(change.constant).size() > 1 || graph_.is_output(change.constant);
  if (!is_copied || weights.size() * info(weights.dtype()).bits / 8 <= max_copied_bytes_) {
    return true;
  }
  return refuse(id, "large weights have other readers");
}

bool ScalePlan::into_contraction(NodeId id, const ChannelAffine& affine) {
  std::string why;
  const TensorType* type = scalable_type(graph_, graph_.node(id).results[0]);
  if (!type) return refuse(id, "operand and result types differ");
  const std::optional<std::size_t> axis = channel_axis(graph_, id);
  const bool has_bias = has_bias_operand(graph_, id);
  if (!has_bias && !affine.scales()) return refuse(id, "it has no bias operand");
  if (has_bias || affine.shifts()) {
    if (!axis || !type->dims[*axis].is_constant() || (affine.axis && affine.axis != axis)) {
      return refuse(id, "the scale or shift does not run along its channels");
    }
    const auto count = static_cast<std::size_t>(type->dims[*axis].constant());
    if (!add_shift(id, affine.scales_of(count), affine.shifts_of(count))) return false;
  }
  takers_.push_back(id);
  if (!affine.scales()) return true;
  const auto change = scale_of_result(graph_, id, affine, why);
  if (!change) return refuse(id, why);
  changes_.emplace_back(NewWeights{*change, {}});
  return may_copy(id, *change);
}

bool ScalePlan::into_constant_term(NodeId id, std::size_t operand, const ChannelAffine& affine) {
  const Node& node = graph_.node(id);
  const Constant& constant = *graph_.constant_of(node.operands[operand]);
  const TensorType& type = graph_.value(node.results[0]).type.tensor();
  const double sign = sign_of(graph_, id, operand);
  if (const std::optional<Channels> term = channels_of(constant, type)) {
    const auto both = pair_up({affine.axis, affine.scale}, *term);
    if (!both) return refuse(id, "its term runs along another axis");
    const std::vector<double> shifts = affine.shifts_of(both->scale.size());
    Channels numbers{both->axis, {}};
    for (std::size_t k = 0; k < both->scale.size(); ++k) {
      numbers.numbers.push_back(both->scale[k] * both->shift[k] + sign * shifts[k]);
    }
    Tensor value = broadcast_tensor(numbers, type.rank(), type.dtype);
    if (!fits(value)) return refuse(id, "its term would be infinite");
    changes_.emplace_back(NewOperand{id, operand, std::move(value)});
    return true;
  }
  if (affine.shifts()) return refuse(id, "the term varies along more than one axis");
  const std::size_t missing = type.rank() - constant.shape().size();
  const std::size_t axis = affine.axis.value_or(type.rank() - 1);
  const bool has_axis = axis >= missing && constant.shape()[axis - missing] > 0 &&
                        (!affine.axis || type.dims[axis] == Dim(constant.shape()[axis - missing]));
  if (!has_axis || constant.size() * info(constant.dtype()).bits / 8 > max_copied_bytes_) {
    return refuse(id, "its term does not run along the channels, or is large");
  }
  const auto count = static_cast<std::size_t>(constant.shape()[axis - missing]);
  const auto value = scaled(constant, {axis - missing, {}, affine.scales_of(count)});
  if (!value) return refuse(id, "its term would leave the range of its type");
  changes_.emplace_back(NewOperand{id, operand, *value});
  return true;
}

bool ScalePlan::into_sum(NodeId id, const ChannelAffine& affine) {
  const Node& node = graph_.node(id);
  const Type& type = graph_.value(node.results[0]).type;
  // A term that becomes a constant may shrink to its broadcast shape: another operand must have the
  // result's shape.
  if (graph_.constant_of(node.operands[0]) && graph_.constant_of(node.operands[1])) {
    return refuse(id, "it adds constants");
  }
  for (std::size_t k = 0; k < 2; ++k) {
    if (!graph_.constant_of(node.operands[k]) && !(graph_.value(node.operands[k]).type == type)) {
      return refuse(id, "it widens its operand");
    }
  }
  // Both terms take the scale, one of them the shift.
  const auto give = [&](std::size_t operand, bool has_shift) {
    ChannelAffine part = has_shift ? affine : affine.scale_only();
    if (graph_.constant_of(node.operands[operand])) return into_constant_term(id, operand, part);
    for (double& number : part.shift) number *= sign_of(graph_, id, operand);
    if (!part.scales() && !part.shifts()) return true;
    return push_back(node.operands[operand], part);
  };
  const std::size_t first = graph_.constant_of(node.operands[1]) ? 1 : 0;
  const auto way = [&](std::size_t with_shift) {
    return [&give, with_shift] { return give(with_shift, true) && give(1 - with_shift, false); };
  };
  if (!affine.shifts()) return way(first)();
  return either(way(first), way(1 - first));
}

bool ScalePlan::push_on(ValueId value, const ChannelAffine& affine) {
  const std::string& name = graph_.value(value).name;
  if (graph_.is_output(value)) return refuse(concat("'", name, "' is an output of the graph"));
  const std::vector<NodeId>& readers = graph_.readers(value);
  if (readers.empty()) return refuse(concat("nothing reads '", name, "'"));
  for (std::size_t k = 0; k < readers.size(); ++k) {
    if (!spend_step()) return false;
    if (k > 0 && std::find(readers.begin(), readers.begin() + static_cast<std::ptrdiff_t>(k),
                           readers[k]) != readers.begin() + static_cast<std::ptrdiff_t>(k)) {
      return refuse(readers[k], "it reads the value twice");
    }
    if (!on_to_reader(readers[k], value, affine)) return false;
  }
  return true;
}

bool ScalePlan::on_to_reader(NodeId reader, ValueId value, const ChannelAffine& affine) {
  const Node& node = graph_.node(reader);
  const std::size_t operand = place_of(node, value);
  if (is_contraction(graph_, reader)) return on_to_contraction(reader, operand, affine);
  if (is_sum(graph_, reader)) return on_through_sum(reader, operand, affine);
  if (operand != 0 || !(is_homogeneous(graph_, reader) || is_pool(graph_, reader))) {
    return refuse(reader, "it has no weights to fold the scale into");
  }
  if (is_pool(graph_, reader)) {
    return pool_passes(reader, affine) && push_on(node.results[0], affine);
  }
  if (!homogeneous_passes(reader, affine)) return false;
  if (!(graph_.value(value).type == graph_.value(node.results[0]).type)) {
    return refuse(reader, "it widens its operand");
  }
  return push_on(node.results[0], affine);
}

bool ScalePlan::on_to_contraction(NodeId id, std::size_t operand, const ChannelAffine& affine) {
  if (operand > 1) return refuse(id, "it reads the value as its bias");
  std::string why;
  const auto change = scale_of_operand(graph_, id, operand, affine, why);
  if (!change) return refuse(id, why);
  // Another scale may already be planned for the same weights.
  if (std::ranges::find(takers_, id) != takers_.end()) return refuse(id, "it takes two scales");
  if (affine.shifts()) {
    const auto effect = effect_of_shift(graph_, id, operand, affine, why);
    if (!effect) return refuse(id, why);
    if (!add_shift(id, std::vector<double>(effect->size(), 1.0), *effect)) return false;
  }
  takers_.push_back(id);
  if (!affine.scales()) return true;
  changes_.emplace_back(NewWeights{*change, {}});
  return may_copy(id, *change);
}

bool ScalePlan::on_through_sum(NodeId id, std::size_t operand, const ChannelAffine& affine) {
  const Node& node = graph_.node(id);
  const Constant* constant = graph_.constant_of(node.operands[1 - operand]);
  const Type& type = graph_.value(node.results[0]).type;
  if (!constant || !(graph_.value(node.operands[operand]).type == type)) {
    return refuse(id, "its other operand is not constant, or wider");
  }
  const std::optional<Channels> term = channels_of(*constant, type.tensor());
  const auto both = term ? pair_up({affine.axis, affine.scale}, *term) : std::nullopt;
  if (!both) return refuse(id, "its term does not run along the channels");
  const double sign = sign_of(graph_, id, operand), other = sign_of(graph_, id, 1 - operand);
  // The constant term either moves along as a shift, or stays and is divided by the scale.
  const auto goes_along = [&] {
    ChannelAffine sum = *both;
    const std::vector<double> shifts = affine.shifts_of(sum.scale.size());
    for (std::size_t k = 0; k < sum.scale.size(); ++k) {
      sum.scale[k] *= sign;
      sum.shift[k] = sign * shifts[k] + other * sum.shift[k];
    }
    changes_.emplace_back(Bypass{id, operand});
    return push_on(node.results[0], sum);
  };
  const auto stays = [&] {
    if (affine.shifts()) return false;  // the reason was set before
    Channels quotient{both->axis, {}};
    for (std::size_t k = 0; k < both->scale.size(); ++k) {
      quotient.numbers.push_back(both->shift[k] / both->scale[k]);
    }
    Tensor value = broadcast_tensor(quotient, type.tensor().rank(), type.tensor().dtype);
    if (!fits(value)) return refuse(id, "its term cannot be divided by the scale");
    changes_.emplace_back(NewOperand{id, 1 - operand, std::move(value)});
    return push_on(node.results[0], affine);
  };
  return either(goes_along, stays);
}

bool ScalePlan::prepare() {
  for (Change& change : changes_) {
    auto* weights = std::get_if<NewWeights>(&change);
    if (!weights) continue;
    auto value = scaled(*graph_.constant_of(weights->change.constant), weights->change.factors);
    if (!value) return refuse("a weight times its scale is too large or too small for its type");
    weights->value = std::move(*value);
  }
  return true;
}

std::vector<NodeId> ScalePlan::commit(Graph& graph) const {
  std::vector<NodeId> bypassed;
  for (const Change& change : changes_) {
    if (const auto* weights = std::get_if<NewWeights>(&change)) {
      const ValueId old = weights->change.constant;
      if (graph.readers(old).size() == 1 && !graph.is_output(old)) {
        graph.set_attribute(graph.value(old).producer, "value", weights->value);
        continue;
      }
      const ValueId made =
          new_constant(graph, weights->change.reader, weights->value, graph.value(old).name);
      if (graph.has_stated_type(old)) graph.set_type(made, graph.value(old).type);
      graph.set_operand(weights->change.reader, weights->change.operand, made);
    } else if (const auto* operand = std::get_if<NewOperand>(&change)) {
      const ValueId made =
          new_constant(graph, operand->node, operand->value, bias_name(graph, operand->node));
      const std::vector<ValueId>& operands = graph.node(operand->node).operands;
      const bool had_one = operand->operand < operands.size() && operands[operand->operand];
      const ValueId old = had_one ? operands[operand->operand] : ValueId();
      graph.set_operand(operand->node, operand->operand, made);
      if (had_one && graph.readers(old).empty() && !graph.is_output(old)) {
        graph.swap_names(old, made);
      }
    } else if (const auto* shift = std::get_if<NewShift>(&change)) {
      const NodeId next = graph.next(shift->node);
      const ValueId result = graph.node(shift->node).results[0];
      Graph::NewNode sum;
      sum.op = &find_op("add");
      sum.operands = {result, ValueId()};
      const std::string name = bias_name(graph, shift->node);
      const ValueId term = new_constant(graph, next, shift->value, name);
      sum.operands[1] = term;
      const ValueId shifted = graph.node(graph.add_node(std::move(sum), next)).results[0];
      graph.replace_uses(result, shifted);
      if (graph.is_output(shifted)) graph.swap_names(result, shifted);
    } else {
      const auto& bypass = std::get<Bypass>(change);
      const Node& node = graph.node(bypass.node);
      graph.replace_uses(node.results[0], node.operands[bypass.operand]);
      graph.set_operand(bypass.node, bypass.operand, {});
      bypassed.push_back(bypass.node);
    }
  }
  return bypassed;
}

}  // namespace tenon::passes::scales
