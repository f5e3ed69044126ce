#include "base/text.h"
#include "documents/megengine/elemwise.h"
#include "documents/megengine/writer.h"
#include "expr/analysis.h"
#include "frontends/node_attrs.h"
#include "ir/text.h"

#include <algorithm>

namespace tenon::documents::megengine {
namespace {

constexpr std::pair<std::string_view, std::string_view> kWrittenReductions[] = {
    {"reduce_sum", "SUM"},      {"reduce_sum_square", "SUM_SQR"},
    {"reduce_prod", "PRODUCT"}, {"reduce_min", "MIN"},
    {"reduce_max", "MAX"},      {"reduce_mean", "MEAN"},
};

}  // namespace

// Attributes at their defaults are absent; a dynamic one is an operand.
bool ProfileWriter::has_only_default(const Node& node,
                                     std::initializer_list<std::string_view> allowed) const {
  return std::all_of(node.attrs.begin(), node.attrs.end(), [&](const Attributes::Item& item) {
    return std::find(allowed.begin(), allowed.end(), item.first) != allowed.end();
  });
}

std::optional<ProfileWriter::Plan> ProfileWriter::elemwise_plan(const Node& node) {
  const ElemwiseMode* mode = elemwise_mode_of(node.op->name);
  if (mode == nullptr || !node.attrs.is_empty() || node.operands.size() != mode->operand_count)
    return std::nullopt;
  Plan plan;
  plan.type = "Elemwise";
  for (ValueId operand : node.operands) {
    if (!operand || !graph_.value(operand).type.is_tensor()) return std::nullopt;
    plan.inputs.push_back(var_of(operand));
  }
  plan.param = {{"mode", std::string(mode->name)}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::convolution_plan(const Node& node) {
  const ValueId x = node.operands[0], w = node.operands[1];
  const auto image = shape_of(x), filter = shape_of(w);
  if (!image || !filter || image->size() != 4 || filter->size() != 4) return std::nullopt;
  if (!has_only_default(node, {"groups", "strides", "dilations", "pads", "auto_pad"}))
    return std::nullopt;
  for (ValueId value : {x, w, node.results[0]}) {
    if (!graph_.value(value).type.tensor().layout.is_empty()) return std::nullopt;
  }
  const auto window = frontends::window_numbers(node, 2);
  const auto groups = frontends::integer_of(node, "groups");
  if (!window || !window->has_same_pads() || !groups || *groups < 1) return std::nullopt;
  const bool has_bias = node.operands.size() > 2 && node.operands[2];
  if ((*groups > 1 && !is_constant(w)) || (has_bias && !is_constant(node.operands[2])))
    return std::nullopt;
  Plan plan;
  plan.type = has_bias ? "ConvBiasForward" : "ConvolutionForward";
  plan.has_workspace = true;
  plan.inputs = {var_of(x)};
  if (*groups > 1) {
    plan.inputs.push_back(constant_as(
        w, {*groups, (*filter)[0] / *groups, (*filter)[1], (*filter)[2], (*filter)[3]}));
  } else {
    plan.inputs.push_back(var_of(w));
  }
  if (has_bias) plan.inputs.push_back(constant_as(node.operands[2], {1, (*filter)[0], 1, 1}));
  plan.param = {{"compute_mode", "DEFAULT"},
                {"format", "NCHW"},
                {"sparse", *groups > 1 ? "GROUP" : "DENSE"},
                {"stride_w", window->strides[1]},
                {"stride_h", window->strides[0]},
                {"pad_w", window->pads[1]},
                {"dilate_w", window->dilations[1]},
                {"dilate_h", window->dilations[0]},
                {"pad_h", window->pads[0]},
                {"mode", "CROSS_CORRELATION"}};
  if (has_bias) plan.param.emplace_back("nonlineMode", "IDENTITY");
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::pooling_plan(const Node& node) {
  const ValueId x = node.operands[0];
  const auto image = shape_of(x);
  const bool has_indices = node.results.size() > 1 && node.results[1];
  if (!image || image->size() != 4 || has_indices || frontends::flag_of(node, "ceil_mode"))
    return std::nullopt;
  if (!has_only_default(node, {"kernel_shape", "strides", "pads", "auto_pad", "count_include_pad"}))
    return std::nullopt;
  if (!graph_.value(x).type.tensor().layout.is_empty()) return std::nullopt;
  const auto window = frontends::window_numbers(node, 2);
  if (!window || !window->has_same_pads()) return std::nullopt;
  const bool is_max = node.op->name == "max_pool";
  Plan plan;
  plan.type = "PoolingForward";
  plan.has_workspace = true;
  plan.inputs = {var_of(x)};
  plan.param = {
      {"format", "NCHW"},
      {"window_w", window->kernel[1]},
      {"window_h", window->kernel[0]},
      {"stride_w", window->strides[1]},
      {"stride_h", window->strides[0]},
      {"pad_w", window->pads[1]},
      {"pad_h", window->pads[0]},
      {"mode", is_max                                          ? "MAX"
               : frontends::flag_of(node, "count_include_pad") ? "AVERAGE"
                                                               : "AVERAGE_COUNT_EXCLUDE_PADDING"}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::matmul_plan(const Node& node) {
  const auto a = shape_of(node.operands[0]), b = shape_of(node.operands[1]);
  if (!a || !b || !node.attrs.is_empty() || rank_of(node.operands[0]) != rank_of(node.operands[1]))
    return std::nullopt;
  const bool is_batched = a->size() == 3;
  if ((a->size() != 2 && !is_batched) || (is_batched && a->front() != b->front()))
    return std::nullopt;
  Plan plan;
  plan.type = is_batched ? "BatchedMatrixMul" : "MatrixMul";
  plan.has_workspace = true;
  plan.inputs = {var_of(node.operands[0]), var_of(node.operands[1])};
  plan.param = {{"format", "DEFAULT"},
                {"compute_mode", "DEFAULT"},
                {"transposeB", false},
                {"transposeA", false}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::reduce_plan(const Node& node) {
  const auto axes = frontends::integers_of(node, "axes");
  const auto shape = shape_of(node.operands[0]);
  if (!shape || !axes || axes->size() != 1 || !frontends::flag_of(node, "keep_axes") ||
      node.operands.size() > 1 || rank_of(node.operands[0]) == 0) {
    return std::nullopt;
  }
  const auto mode = std::find_if(std::begin(kWrittenReductions), std::end(kWrittenReductions),
                                 [&](const auto& entry) { return entry.first == node.op->name; });
  if (mode == std::end(kWrittenReductions)) return std::nullopt;
  std::int64_t axis = axes->front();
  if (axis < 0) axis += static_cast<std::int64_t>(shape->size());
  Plan plan;
  plan.type = "Reduce";
  plan.has_workspace = true;
  plan.inputs = {var_of(node.operands[0])};
  plan.param = {{"axis", axis}, {"data_type", "DEFAULT"}, {"mode", std::string(mode->second)}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::batch_norm_plan(const Node& node) {
  const auto shape = shape_of(node.operands[0]);
  if (!shape || shape->size() != 4 || frontends::integer_of(node, "axis") != 1) return std::nullopt;
  if (!graph_.value(node.operands[0]).type.tensor().layout.is_empty()) return std::nullopt;
  Plan plan;
  plan.type = "BatchNormForward";
  plan.before = {"running_mean", "running_variance", "save_mean", "save_variance", "reserve"};
  for (std::size_t k = 1; k < node.operands.size(); ++k) {
    if (!is_constant(node.operands[k])) return std::nullopt;
  }
  plan.inputs = {var_of(node.operands[0])};
  for (std::size_t k = 1; k < node.operands.size(); ++k) {
    plan.inputs.push_back(constant_as(node.operands[k], {1, (*shape)[1], 1, 1}));
  }
  plan.param = {{"param_dim", "DIM_1C11"},
                {"fwd_mode", "INFERENCE"},
                {"epsilon", frontends::real_of(node, "epsilon")},
                {"avg_factor", 1},
                {"scale", 1},
                {"bias", 0}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::reshape_plan(const Node& node) {
  const bool is_expand = node.op->name == "expand";
  const auto result = shape_of(node.results[0]);
  if (!result || rank_of(node.results[0]) == 0 || rank_of(node.operands[0]) == 0 ||
      node.operands.size() > 1)
    return std::nullopt;
  auto target = frontends::integers_of(node, "shape");
  if (!target) return std::nullopt;
  const bool copies = std::find(target->begin(), target->end(), 0) != target->end();
  if (is_expand || copies) target = result;
  if (target->size() >= 7) return std::nullopt;
  Plan plan;
  plan.type = is_expand ? "Broadcast" : "Reshape";
  plan.is_view = !is_expand;
  plan.inputs = {var_of(node.operands[0])};
  plan.inputs.push_back(host_constant(*target));
  const auto open = std::find(target->begin(), target->end(), -1);
  if (!is_expand && open != target->end()) plan.param = {{"axis", open - target->begin()}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::axes_plan(const Node& node) {
  const bool is_removal = node.op->name == "squeeze";
  auto axes = frontends::integers_of(node, "axes");
  const auto shape = shape_of(node.operands[0]);
  const std::size_t rank = rank_of(is_removal ? node.operands[0] : node.results[0]);
  if (!axes || !shape || node.operands.size() > 1 || rank_of(node.results[0]) == 0 ||
      rank_of(node.operands[0]) == 0)
    return std::nullopt;
  if (is_removal && axes->empty()) return std::nullopt;
  for (std::int64_t& axis : *axes) {
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
  }
  std::sort(axes->begin(), axes->end());
  // Removing axes from the last one on leaves the positions of the others unchanged.
  if (is_removal) std::reverse(axes->begin(), axes->end());
  Plan plan;
  plan.type = "AxisAddRemove";
  plan.is_view = true;
  plan.inputs = {var_of(node.operands[0])};
  frontends::JsonValue::Array desc;
  for (std::int64_t axis : *axes)
    desc.push_back(frontends::JsonValue::Object{{"method", is_removal ? 1 : 0}, {"axisnum", axis}});
  plan.param = {{"nr_desc", static_cast<std::int64_t>(desc.size())}, {"desc", std::move(desc)}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::transpose_plan(const Node& node) {
  auto perm = frontends::integers_of(node, "perm");
  const std::size_t rank = rank_of(node.operands[0]);
  if (!perm || rank == 0 || !shape_of(node.operands[0])) return std::nullopt;
  if (perm->empty()) {
    for (std::size_t k = rank; k-- > 0;) perm->push_back(static_cast<std::int64_t>(k));
  }
  Plan plan;
  plan.type = "Dimshuffle";
  plan.inputs = {var_of(node.operands[0])};
  plan.param = {{"ndim", static_cast<std::int64_t>(rank)},
                {"pattern", frontends::JsonValue::integers(*perm)}};
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::slice_plan(const Node& node) {
  const auto starts = frontends::integers_of(node, "starts"),
             ends = frontends::integers_of(node, "ends");
  auto axes = frontends::integers_of(node, "axes"), steps = frontends::integers_of(node, "steps");
  const auto shape = shape_of(node.operands[0]);
  if (!starts || !ends || !axes || !steps || !shape || node.operands.size() > 1 ||
      rank_of(node.operands[0]) == 0)
    return std::nullopt;
  Plan plan;
  plan.type = "Subtensor";
  if (steps->empty()) steps->assign(starts->size(), 1);
  if (axes->empty()) {
    for (std::size_t k = 0; k < starts->size(); ++k) axes->push_back(static_cast<std::int64_t>(k));
  }
  if (std::any_of(steps->begin(), steps->end(), [](std::int64_t step) { return step <= 0; }))
    return std::nullopt;
  plan.inputs = {var_of(node.operands[0])};
  plan.param_list.emplace();
  for (std::size_t k = 0; k < starts->size(); ++k) {
    std::int64_t axis = (*axes)[k];
    if (axis < 0) axis += static_cast<std::int64_t>(shape->size());
    const std::int64_t extent = shape->at(static_cast<std::size_t>(axis));
    const auto held = [&](std::int64_t index) { return std::clamp(index, -extent, extent); };
    plan.inputs.push_back(host_constant({held((*starts)[k])}));
    plan.inputs.push_back(host_constant({held((*ends)[k])}));
    plan.inputs.push_back(host_constant({(*steps)[k]}));
    plan.param_list->push_back(frontends::JsonValue::Object{
        {"axis", axis}, {"begin", 1}, {"end", 1}, {"step", 1}, {"idx", 0}});
  }
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::other_plan(const Node& node) {
  const std::string& op = node.op->name;
  Plan plan;
  if (op == "concat") {
    const auto axis = frontends::integer_of(node, "axis");
    const std::size_t rank = rank_of(node.results[0]);
    if (!axis || rank == 0) return std::nullopt;
    plan.type = "Concat";
    for (ValueId operand : node.operands) plan.inputs.push_back(var_of(operand));
    plan.param = {{"axis", *axis < 0 ? *axis + static_cast<std::int64_t>(rank) : *axis}};
  } else if (op == "softmax") {
    if (rank_of(node.operands[0]) == 0) return std::nullopt;
    plan.type = "SoftmaxForward";
    plan.inputs = {var_of(node.operands[0])};
    plan.param = {{"axis", frontends::integer_of(node, "axis").value_or(-1)}};
  } else if (op == "cast") {
    const auto* dtype = frontends::attr_of<DType>(node, "to");
    if (dtype == nullptr || !has_only_default(node, {"to"}) || !dtype_of(dtype_name(*dtype)))
      return std::nullopt;
    if (!graph_.value(node.operands[0]).type.is_tensor()) return std::nullopt;
    plan.type = "TypeCvt";
    plan.start = concat("as", dtype_name(*dtype));
    plan.inputs = {var_of(node.operands[0])};
  } else if (op == "shape" && node.attrs.is_empty() && rank_of(node.operands[0]) > 0 &&
             shape_of(node.operands[0])) {
    plan.type = "GetVarShape";
    plan.inputs = {var_of(node.operands[0])};
  } else {
    return std::nullopt;
  }
  return plan;
}

std::optional<ProfileWriter::Plan> ProfileWriter::plan_of(NodeId id) {
  const Node& node = graph_.node(id);
  const std::string& op = node.op->name;
  // MegEngine's operators return a single tensor.
  if (node.results.empty() || !node.results[0] || !graph_.value(node.results[0]).type.is_tensor())
    return std::nullopt;
  if (node.operands.empty() || !node.operands[0] || !shape_of(node.results[0])) return std::nullopt;
  if (op == "conv") return convolution_plan(node);
  if (op == "max_pool" || op == "average_pool") return pooling_plan(node);
  if (op == "matmul") return matmul_plan(node);
  if (op == "batch_norm") return batch_norm_plan(node);
  if (op == "reshape" || op == "expand") return reshape_plan(node);
  if (op == "squeeze" || op == "unsqueeze") return axes_plan(node);
  if (op == "transpose") return transpose_plan(node);
  if (op == "slice") return slice_plan(node);
  if (op.starts_with("reduce_")) return reduce_plan(node);
  if (auto plan = elemwise_plan(node)) return plan;
  return other_plan(node);
}

// An operator that MegEngine lacks keeps Tenon's name; the parameter contains the record for its
// import.
ProfileWriter::Plan ProfileWriter::tenon_plan(const NativeNode& own, NodeId id) {
  Plan plan;
  plan.type = plan.start = tenon_type_of(graph_, id);
  for (const ValueId input : own.inputs) plan.inputs.push_back(var_of(input));
  plan.param.emplace_back(std::string(kOwnParam), own.text);
  plan.computation = symbolic_ != nullptr ? tenon_computation_of(*symbolic_, next_symbolic_)
                                          : tenon_computation_of(graph_, id);
  return plan;
}

}  // namespace tenon::documents::megengine
