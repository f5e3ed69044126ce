#include "documents/aitemplate/operator_import.h"

#include "base/error.h"
#include "base/text.h"
#include "documents/seeded_weight.h"
#include "frontends/known_names.h"
#include "ir/graph.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "ops/families/matrices.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

constexpr std::size_t kMostAxes = 10;  // of a matrix product

// Moves channels from the last to the first position, and back.
std::vector<std::int64_t> to_front(std::size_t rank) {
  std::vector<std::int64_t> perm{0, static_cast<std::int64_t>(rank) - 1};
  for (std::size_t k = 1; k + 1 < rank; ++k) perm.push_back(static_cast<std::int64_t>(k));
  return perm;
}
std::vector<std::int64_t> to_back(std::size_t rank) {
  std::vector<std::int64_t> perm{0};
  for (std::size_t k = 2; k < rank; ++k) perm.push_back(static_cast<std::int64_t>(k));
  perm.push_back(1);
  return perm;
}

}  // namespace

OperatorImport::OperatorImport(const OperatorRow& row, const DimTable& dims, Builder& build,
                               std::vector<Operand> operands,
                               std::vector<std::vector<DimRow>> outputs)
    : row_(row),
      dims_(dims),
      build_(build),
      operands_(std::move(operands)),
      outputs_(std::move(outputs)) {}

const std::vector<OperatorImport::Entry>& OperatorImport::handlers() {
  static const std::vector<Entry> all = {
      {"fused_elementwise", &OperatorImport::group},
      {"elementwise", &OperatorImport::elementwise},
      {"max_pool2d", &OperatorImport::pool},
      {"avg_pool2d", &OperatorImport::pool},
      {"reshape", &OperatorImport::reshape},
      {"flatten", &OperatorImport::reshape},
      {"squeeze", &OperatorImport::squeeze},
      {"unsqueeze", &OperatorImport::unsqueeze},
      {"permute", &OperatorImport::permute},
      {"permute021", &OperatorImport::permute},
      {"permute102", &OperatorImport::permute},
      {"permute210", &OperatorImport::permute},
      {"permute0213", &OperatorImport::permute},
      {"concatenate", &OperatorImport::concatenate},
      {"split", &OperatorImport::split},
      {"dynamic_slice", &OperatorImport::slice},
      {"softmax", &OperatorImport::softmax},
      {"layernorm", &OperatorImport::layer_norm},
      {"groupnorm", &OperatorImport::group_norm},
      {"groupnorm_swish", &OperatorImport::group_norm},
      {"reduce_sum", &OperatorImport::reduce},
      {"reduce_mean", &OperatorImport::reduce},
      {"reduce_max", &OperatorImport::reduce},
      {"reduce_min", &OperatorImport::reduce},
      {"identity", &OperatorImport::identity},
      {"nhwc3to4", &OperatorImport::pad_channels},
      {"nhwc3to8", &OperatorImport::pad_channels},
      {"full", &OperatorImport::full},
      {"var", &OperatorImport::variance},
      {"batch_gather", &OperatorImport::batch_gather},
      {"flash_attention", &OperatorImport::flash_attention},
  };
  return all;
}

const OperatorImport::Entry* OperatorImport::find_handler(std::string_view op) {
  const auto& all = handlers();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Entry& entry) { return entry.name == op; });
  return found == all.end() ? nullptr : &*found;
}

bool OperatorImport::knows(const OperatorRow& row) {
  if (row.find(kOwnKey) != nullptr) return true;
  return find_handler(row.op) != nullptr || parse_composite(row.op).has_value();
}

namespace {

// Attributes of AITemplate's operators, except those of `schema.h`.
constexpr std::string_view kAttributes =
    "alpha alpha0 alpha1 alpha1_divide_by_seq_len arch backend_suffix batch_dim batch_size "
    "beta_constant bias broadcast_b1 cast_dtype causal causal_type check_sequence_lengths CO "
    "concat_dim continuous_coordinate cutedsl_obj_path default_normalized_shape dilate dim "
    "dim_lower_bounds dims dropout dtype element_func end end_indices epilogue epilogue2 "
    "epilogue_alignment epilogue_math_name eps exec_cond_template expand_dim f_ab_alignment "
    "fast_cat fill_value gamma_constant gather_dim group group_name groups has_d head_dim_count "
    "head_size im_shape index_type input_masks int_state_flag iou_threshold iouThreshold "
    "is_int_var is_intvar isolated jagged_dims jagged_int_var KD keep_n keepdim kernel_size KH KT "
    "KW lda ldb ldc layout lower_bounds max_seq_len max_shape minBoxSize mode ndim nmsMaxOut "
    "non_head_dims_are_fixed normalized_shape num_channels num_groups num_heads num_rois "
    "num_sources offset offsets op_instance optimize_fixed_dims ord_kind out_dim out_dim_to_in "
    "output_masks output_stride_dim output_type pad padding_value permute_shape pooled_size "
    "position_sensitive preNmsTop reduce_func reduction_axes sampling_ratio scale scale_factor "
    "scatter_dim seq_len shape slice_ops spatial_scale split_dim split_k split_k_hints split_sizes "
    "start start_indices stride topK total_length unbiased unique_workspace "
    "unique_workspace_offset unknown_idx use_grouped_fmha variable_seq_length_kv "
    "variable_seq_length_q workdir workspace";

}  // namespace

void OperatorImport::refuse_unknown_attributes(const OperatorRow& row) {
  for (const auto& [name, value] : row.further) {
    if (!name.starts_with(kOwnKey)) frontends::require_attribute(row.op, name, kAttributes);
  }
  for (const OperatorRow& inner : row.elementwise_ops) refuse_unknown_attributes(inner);
}

std::vector<Var> OperatorImport::run() {
  refuse_unknown_attributes(row_);
  if (row_.find(kOwnKey) != nullptr) return tenon_op();
  if (const Entry* entry = find_handler(row_.op)) return (this->*entry->handler)();
  if (parse_composite(row_.op)) return composite();
  throw UnsupportedOperator{"there is no such operator in Tenon"};
}

// ---- attributes ----

Var OperatorImport::operand(std::size_t index) const {
  if (index >= operands_.size()) {
    throw Error(concat(row_.op, ": an operand is missing"))
        .expected("at least ", index + 1)
        .got(operands_.size());
  }
  return operands_[index].value;
}

const PythonValue& OperatorImport::attribute(std::string_view name) const {
  const PythonValue* found = row_.find(name);
  if (found == nullptr) throw Error(concat(row_.op, ": the attribute '", name, "' is missing"));
  return *found;
}

std::int64_t OperatorImport::integer(std::string_view name) const {
  const PythonValue& value = attribute(name);
  if (!value.is(Kind::Integer)) throw Error(concat(row_.op, ": '", name, "' is no whole number"));
  return value.integer;
}

double OperatorImport::real(std::string_view name, double otherwise) const {
  const PythonValue* value = row_.find(name);
  if (value == nullptr) return otherwise;
  if (value->is(Kind::Integer)) return static_cast<double>(value->integer);
  if (!value->is(Kind::Real)) throw Error(concat(row_.op, ": '", name, "' is no number"));
  return value->real;
}

bool OperatorImport::flag(std::string_view name) const {
  const PythonValue* value = row_.find(name);
  if (value != nullptr && !value->is(Kind::Bool))
    throw Error(concat(row_.op, ": '", name, "' is no truth value"));
  return value != nullptr && value->integer != 0;
}

std::vector<std::int64_t> OperatorImport::integers(std::string_view name) const {
  const PythonValue& value = attribute(name);
  std::vector<std::int64_t> numbers;
  if (!value.is(Kind::List) && !value.is(Kind::Tuple))
    throw Error(concat(row_.op, ": '", name, "' is no list"));
  for (const PythonValue& item : value.items) {
    if (!item.is(Kind::Integer))
      throw Error(concat(row_.op, ": '", name, "' holds something other than whole numbers"));
    numbers.push_back(item.integer);
  }
  return numbers;
}

std::vector<std::int64_t> OperatorImport::per_axis(std::string_view name, std::size_t count,
                                                   std::int64_t otherwise) const {
  const PythonValue* value = row_.find(name);
  if (value == nullptr) return std::vector<std::int64_t>(count, otherwise);
  if (value->is(Kind::Integer)) return std::vector<std::int64_t>(count, value->integer);
  std::vector<std::int64_t> numbers = integers(name);
  if (numbers.size() != count) {
    throw Error(concat(row_.op, ": '", name, "' has the wrong length"))
        .expected(count)
        .got(numbers.size());
  }
  return numbers;
}

std::int64_t OperatorImport::axis(std::string_view name) const { return integer(name); }

Var OperatorImport::splat(double number, const Dims& dims, DType dtype) {
  if (!all_constant(dims)) throw UnsupportedOperator{"a constant of varying extent"};
  return build_.constant(Constant::splat(Tensor::scalar(dtype, number), constants(dims)));
}

// ---- images ----

// Tenon reads the layout from the type. An image without one is permuted to the default layout.
Var OperatorImport::channels_first(const Operand& image, std::string_view layout, bool& was_moved) {
  const TensorType& type = build_.type(image.value).tensor();
  was_moved = !image.keeps_layout && type.layout.text() != layout;
  if (!was_moved) return image.value;
  if (!type.layout.is_empty()) {
    throw Error(concat(row_.op, ": the operand has another layout")).expected(layout).got(type);
  }
  return build_.call("transpose", {image.value}, {{"perm", to_front(type.rank())}});
}

Var OperatorImport::channels_last(Var value, bool was_moved) {
  if (!was_moved) return value;
  return build_.call("transpose", {value}, {{"perm", to_back(rank(value))}});
}

Var OperatorImport::convolution(const Composite& composite, std::size_t& used) {
  const Var image = operand(0);
  operand(1);  // throws if it is missing
  const std::size_t axes = rank(image) - 2;
  if (rank(image) != 4 && rank(image) != 5)
    throw Error(concat(row_.op, ": the image has no four or five axes"));
  bool was_moved = false, weight_was_moved = false;
  std::vector<Var> operands = {
      channels_first(operands_[0], image_layout(axes + 2), was_moved),
      channels_first(operands_[1], weight_layout(axes + 2), weight_was_moved)};
  used = 2;
  if (!composite.steps.empty() && composite.steps.front() == EpilogueStep::Bias)
    operands.push_back(operand(used++));
  const auto strides = per_axis("stride", axes, 1), dilations = per_axis("dilate", axes, 1);
  auto pads = per_axis("pad", axes, 0);
  std::vector<Attr> attrs;
  const auto differ = [](const std::vector<std::int64_t>& list, std::int64_t number) {
    return std::any_of(list.begin(), list.end(), [&](std::int64_t each) { return each != number; });
  };
  if (differ(strides, 1)) attrs.emplace_back("strides", strides);
  if (differ(dilations, 1)) attrs.emplace_back("dilations", dilations);
  if (differ(pads, 0)) {
    pads.insert(pads.end(), pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(axes));
    attrs.emplace_back("pads", pads);
  }
  if (row_.find("group") != nullptr && integer("group") != 1)
    attrs.emplace_back("groups", integer("group"));
  const bool is_transposed = composite.base == Composite::Base::TransposedConv;
  return channels_last(build_.call(is_transposed ? "conv_transpose" : "conv", operands, attrs),
                       was_moved);
}

std::vector<Var> OperatorImport::pool() {
  bool was_moved = false;
  operand(0);  // throws if it is missing
  const Var image = channels_first(operands_[0], image_layout(4), was_moved);
  const bool is_maximum = row_.op == "max_pool2d";
  const auto kernel = per_axis("kernel_size", 2, 1), strides = per_axis("stride", 2, 1);
  auto pads = per_axis("pad", 2, 0);
  const bool has_pads = pads[0] != 0 || pads[1] != 0;
  std::vector<Attr> attrs = {{"kernel_shape", kernel}};
  if (strides[0] != 1 || strides[1] != 1) attrs.emplace_back("strides", strides);
  if (has_pads)
    attrs.emplace_back("pads", std::vector<std::int64_t>{pads[0], pads[1], pads[0], pads[1]});
  // The mean always includes padding.
  if (has_pads && !is_maximum) attrs.emplace_back("count_include_pad", true);
  return {channels_last(build_.call(is_maximum ? "max_pool" : "average_pool", {image}, attrs),
                        was_moved)};
}

// ---- matrix products and epilogues ----

Var OperatorImport::product(const Composite& composite) {
  const Var a = operand(0), b = operand(1);
  const bool is_batched = composite.base == Composite::Base::Bmm;
  const std::size_t least = is_batched ? 3 : 2;
  if (rank(a) < 2 || rank(b) < 2 || rank(a) > kMostAxes) {
    throw Error(concat(row_.op, ": operands are no matrices"))
        .got(build_.type(a), " and ", build_.type(b));
  }
  // A weight that the exporter transposed is restored.
  const bool has_transposed_weight =
      composite.layout == "rcr" && !is_batched && operands_[1].keeps_layout;
  if (composite.layout == "rrr" || has_transposed_weight) return build_.call("matmul", {a, b});
  const bool fits = is_batched
                        ? rank(a) == least && rank(b) == least &&
                              build_.type(a).tensor().dims[0] == build_.type(b).tensor().dims[0]
                        : rank(b) == least && (rank(a) == least || composite.layout[0] == 'r');
  if (fits) return build_.call("einsum", {a, b}, {{"equation", gemm_equation(composite, rank(a))}});
  // Uses matmul because an einsum would not broadcast a batch of one.
  const auto swapped = [&](Var x) { return with_last_axes_swapped(build_, x); };
  const Var left = composite.layout[0] == 'r' ? a : swapped(a);
  const Var right = composite.layout[1] == 'r' ? b : swapped(b);
  const Var c = build_.call("matmul", {left, right});
  return composite.layout[2] == 'r' ? c : swapped(c);
}

Var OperatorImport::step(EpilogueStep step, Var value, std::size_t& used) {
  std::vector<Var> operands = {value};
  if (takes_operand(step)) operands.push_back(operand(used++));
  const OpDef& op = find_op(op_of(step));
  return build_.call_all(op.name, operands, parse_attributes(attributes_of(step), op), {""})
      .front();
}

Var OperatorImport::composite_value(const Composite& composite) {
  std::size_t used = 2;
  Var value = composite.is_convolution() ? convolution(composite, used) : product(composite);
  if (const double alpha = real("alpha", 1.0); alpha != 1.0) value = value * alpha;
  for (std::size_t k = 0; k < composite.steps.size(); ++k) {
    const bool is_done =
        k == 0 && composite.is_convolution() && composite.steps[k] == EpilogueStep::Bias;
    if (!is_done) value = step(composite.steps[k], value, used);
  }
  if (used != operands_.size()) {
    throw Error(concat(row_.op, ": the number of operands does not fit"))
        .expected(used)
        .got(operands_.size());
  }
  return value;
}

std::vector<Var> OperatorImport::composite() {
  const Composite composite = *parse_composite(row_.op);
  const bool is_scaled = real("alpha", 1.0) != 1.0;
  const bool is_single =
      !is_scaled &&
      (composite.steps.empty() || (composite.is_convolution() && composite.steps.size() == 1 &&
                                   composite.steps.front() == EpilogueStep::Bias));
  if (is_single) return {composite_value(composite)};
  return fused(
      [&](OperatorImport& inner) { return std::vector<Var>{inner.composite_value(composite)}; });
}

// ---- groups ----

/// Creates one node whose body is filled by `fill`.
template <class Fill>
std::vector<Var> OperatorImport::fused(const Fill& fill) {
  Graph body;
  Builder inside(body);
  std::vector<Operand> inner_operands;
  std::vector<Var> outer_operands;
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    const std::string name = k < row_.inputs.size() ? row_.inputs[k] : "";
    outer_operands.push_back(operands_[k].value);
    inner_operands.push_back(
        {inside.input(body.free_name(name.empty() ? "x" : name), build_.type(operands_[k].value)),
         operands_[k].keeps_layout});
  }
  OperatorImport import(row_, dims_, inside, std::move(inner_operands), outputs_);
  const std::vector<Var> results = fill(import);
  for (const Var result : results) inside.output(result);
  return build_.call_all("fused", outer_operands, Attributes(),
                         std::vector<std::string>(results.size()), {std::move(body)});
}

// The dump does not record numeric arguments: without a usual default, arbitrary ones are used.
Var OperatorImport::apply(const OperatorRow& inner, const std::vector<Var>& args) {
  if (!inner.func) throw Error("an elementwise operator has no function");
  const FuncInfo* func = find_func(inner.func->name);
  if (func == nullptr) throw UnsupportedOperator{concat("the function ", inner.func->name)};
  const auto like = std::find_if(args.begin(), args.end(), [](Var arg) { return arg.is_valid(); });
  if (like == args.end()) throw UnsupportedOperator{"a function of numbers alone"};
  const DType dtype = build_.type(*like).tensor().dtype;
  if (args.size() < std::min<std::size_t>(func->operand_count, func->name == "HARDTANH" ? 1 : 3) ||
      args.size() > func->operand_count + func->number_count) {
    throw Error(concat(func->name, ": the number of arguments does not fit"))
        .expected(func->operand_count)
        .got(args.size());
  }
  std::vector<Var> operands;
  for (std::size_t k = 0; k < func->operand_count; ++k) {
    Var arg = k < args.size() ? args[k] : Var();
    if (!arg.is_valid() && func->name == "HARDTANH") {
      arg = splat(k == 1 ? -1 : 1, {}, dtype);
    } else if (!arg.is_valid()) {
      arg = build_.constant(
          seeded_weight(dtype, {}, concat(inner.name.value_or("elementwise"), "_arg_", k), 0));
    }
    operands.push_back(arg);
  }
  if (func->name == "FLOOR_DIV") return build_.call("floor", {build_.call("div", operands)});
  if (func->name == "NAN_TO_NUM") {
    const Var x = operands.at(0);
    const Var number = build_.call("where", {build_.call("is_nan", {x}), splat(0, {}, dtype), x});
    const double most = highest_finite(dtype);
    return build_.call("clip", {number, splat(-most, {}, dtype), splat(most, {}, dtype)});
  }
  if (func->op.empty()) throw UnsupportedOperator{concat("the function ", func->name)};
  const OpDef& op = find_op(func->op);
  return build_.call_all(op.name, operands, parse_attributes(func->words, op), {""}).front();
}

std::vector<Var> OperatorImport::elementwise() {
  std::vector<Var> args;
  std::size_t used = 0;
  for (const auto& arg : row_.args.value_or(
           std::vector<std::optional<std::string>>(row_.inputs.begin(), row_.inputs.end()))) {
    const bool is_input = arg && used < row_.inputs.size() && row_.inputs[used] == *arg;
    args.push_back(is_input ? operand(used++) : Var());
  }
  return {apply(row_, args)};
}

std::vector<Var> OperatorImport::group() {
  const auto fill = [](OperatorImport& import) {
    std::unordered_map<std::string, Var> values;
    // Inner operators refer to the names from before accessors redirected to other tensors.
    const auto& names = import.row_.original_inputs;
    for (std::size_t k = 0; k < import.row_.inputs.size(); ++k) {
      if (names && k < names->size() && (*names)[k])
        values.emplace(*(*names)[k], import.operand(k));
    }
    for (std::size_t k = 0; k < import.row_.inputs.size(); ++k)
      values.emplace(import.row_.inputs[k], import.operand(k));
    for (const OperatorRow& inner : import.row_.elementwise_ops) {
      std::vector<Var> args;
      for (const auto& name : inner.args.value_or(
               std::vector<std::optional<std::string>>(inner.inputs.begin(), inner.inputs.end()))) {
        if (name && !values.contains(*name)) {
          throw Error(concat("the inner operator '", inner.name.value_or(""),
                             "' reads what nobody made before it"))
              .got(*name);
        }
        args.push_back(name ? values.at(*name) : Var());
      }
      if (inner.outputs.size() != 1) throw Error("an inner operator has one output");
      values[inner.outputs[0]] = import.apply(inner, args);
    }
    // An accessor's tensor differs from the one that the group computes.
    const auto& originals = import.row_.original_outputs;
    std::vector<Var> results;
    for (std::size_t k = 0; k < import.row_.outputs.size(); ++k) {
      const bool has_original = originals && k < originals->size() && (*originals)[k].name;
      const std::string& name = has_original ? *(*originals)[k].name : import.row_.outputs[k];
      const auto found = values.find(name);
      if (found == values.end())
        throw Error("no inner operator makes an output of the group").got(name);
      results.push_back(found->second);
    }
    return results;
  };
  if (row_.elementwise_ops.empty()) throw Error("the group has no inner operators");
  if (row_.elementwise_ops.size() == 1 && row_.outputs.size() == 1) return fill(*this);
  return fused(fill);
}

}  // namespace tenon::documents::aitemplate
