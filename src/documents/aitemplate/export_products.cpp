#include "base/error.h"
#include "documents/aitemplate/exporter.h"
#include "documents/aitemplate/kernel_choices.h"
#include "documents/aitemplate/kernel_facts.h"
#include "ir/text.h"

#include <algorithm>

// Export of convolutions, matrix products, poolings and reductions.
namespace tenon::documents::aitemplate {
namespace {

using Kind = PythonValue::Kind;

bool is_one_number(const std::vector<std::int64_t>& list) {
  return std::adjacent_find(list.begin(), list.end(), std::not_equal_to<>()) == list.end();
}

// Returns one number if all are equal, else a tuple.
PythonValue number_or_tuple(const std::vector<std::int64_t>& list) {
  if (is_one_number(list)) return PythonValue::number(list.front());
  PythonValue tuple = PythonValue::list(list);
  tuple.kind = Kind::Tuple;
  return tuple;
}

std::string layout_of(const Graph& graph, ValueId id, std::string_view otherwise) {
  const std::string& text = graph.value(id).type.tensor().layout.text();
  return text.empty() ? std::string(otherwise) : text;
}

bool is_permutation_of(const std::string& layout, std::string_view letters) {
  return layout.size() == letters.size() &&
         std::is_permutation(layout.begin(), layout.end(), letters.begin());
}

std::vector<std::int64_t> permutation_between(const std::string& from, const std::string& to) {
  std::vector<std::int64_t> perm;
  for (const char letter : to) perm.push_back(static_cast<std::int64_t>(from.find(letter)));
  return perm;
}

}  // namespace

// ---- layouts ----

// Permutes a tensor to another layout, once per layout.
std::size_t DumpExporter::change_layout(std::size_t tensor, const std::string& from,
                                        const std::string& to) {
  if (from == to) return tensor;
  const auto [known, is_new] = changed_.try_emplace({tensor, from + to}, tensors_.size());
  if (!is_new) return known->second;
  const std::vector<std::int64_t> perm = permutation_between(from, to);
  Operation operation = permutation(tensor, perm);
  operation.row.further.emplace_back("tenon_layout", PythonValue::string("operand"));
  Tensor changed;
  changed.dtype = tensors_[tensor].dtype;
  for (const std::int64_t axis : perm)
    changed.extents.push_back(tensors_[tensor].extents[static_cast<std::size_t>(axis)]);
  tensors_.push_back(std::move(changed));
  operation.outputs = {tensors_.size() - 1};
  add_made(std::move(operation));
  return known->second;
}

// Adds an operation whose result is an image in AITemplate's layout, and converts it to the
// graph's.
void DumpExporter::add_image(Operation operation, const std::string& layout, ValueId result) {
  const std::string image(image_layout(4));
  const Origins batch = {std::make_pair(std::size_t{0}, std::size_t{0})};
  if (layout == image) {
    add(std::move(operation), {result}, {batch});
    return;
  }
  const TensorType& type = graph_.value(result).type.tensor();
  Tensor raw;
  raw.dtype = type.dtype;
  Dims dims;
  for (const std::int64_t axis : permutation_between(layout, image))
    dims.push_back(type.dims[static_cast<std::size_t>(axis)]);
  raw.extents = result_extents(dims, operation.inputs, batch);
  tensors_.push_back(std::move(raw));
  operation.outputs = {tensors_.size() - 1};
  const std::size_t made = operation.outputs[0];
  add_made(std::move(operation));
  const std::vector<std::int64_t> back = permutation_between(image, layout);
  Operation change = permutation(made, back);
  change.row.further.emplace_back("tenon_layout", PythonValue::string("result"));
  Origins origins;
  for (const std::int64_t axis : back)
    origins.emplace_back(std::make_pair(std::size_t{0}, static_cast<std::size_t>(axis)));
  add(std::move(change), {result}, {origins});
}

// ---- convolutions ----

std::optional<DumpExporter::ConvolutionParts> DumpExporter::convolution_parts(
    const Graph& graph, const Node& node) const {
  const bool is_transposed = node.op->name == "conv_transpose";
  if (node.op->name != "conv" && !is_transposed) return std::nullopt;
  for (const ValueId operand : node.operands) {
    if (!operand || !graph.value(operand).type.is_tensor()) return std::nullopt;
  }
  for (const std::string_view name :
       {"auto_pad", "out_layout", "out_dtype", "output_padding", "output_shape"}) {
    if (node.attrs.find(name) != nullptr) return std::nullopt;
  }
  const TensorType& x = graph.value(node.operands[0]).type.tensor();
  const TensorType& w = graph.value(node.operands[1]).type.tensor();
  ConvolutionParts parts;
  parts.node = &node;
  parts.graph = &graph;
  parts.x_layout = layout_of(graph, node.operands[0], "NCHW");
  parts.w_layout = layout_of(graph, node.operands[1], "OIHW");
  if (x.rank() != 4 || w.rank() != 4 || !all_constant(w.dims)) return std::nullopt;
  if (!is_permutation_of(parts.x_layout, "NCHW") || !is_permutation_of(parts.w_layout, "OIHW"))
    return std::nullopt;
  const auto window = frontends::window_numbers(node, 2);
  if (!window || !window->has_same_pads() || window->pads[0] < 0 || window->pads[1] < 0)
    return std::nullopt;
  parts.window = *window;
  parts.groups = frontends::integer_of(node, "groups").value_or(1);
  const std::int64_t channels = x.dims[parts.x_layout.find('C')].value().value_or(0);
  const std::int64_t outputs = w.dims[parts.w_layout.find('O')].constant();
  if (channels == 0) return std::nullopt;
  const bool is_depthwise =
      !is_transposed && parts.groups > 1 && parts.groups == channels && outputs == channels;
  parts.base = is_transposed ? "transposed_conv2d" : is_depthwise ? "conv2d_depthwise" : "conv2d";
  return parts;
}

void DumpExporter::add_convolution(const ConvolutionParts& parts, std::size_t x, std::size_t w,
                                   const std::vector<std::size_t>& further,
                                   const std::vector<EpilogueStep>& steps, ValueId result) {
  const std::string image(image_layout(4)), weight(weight_layout(4));
  x = change_layout(x, parts.x_layout, image);
  w = change_layout(w, parts.w_layout, weight);
  const bool is_transposed = parts.base == "transposed_conv2d";
  Operation operation;
  operation.row.op =
      *composite_name(parts.base == "conv2d_depthwise" ? "conv2d" : parts.base, steps);
  if (parts.base == "conv2d_depthwise")
    operation.row.op.replace(0, std::string_view("conv2d").size(), parts.base);
  operation.row.has_profiler = true;
  operation.inputs = {x, w};
  for (const std::size_t each : further) {
    const bool is_image = tensors_[each].extents.size() == image.size();
    operation.inputs.push_back(is_image ? change_layout(each, parts.x_layout, image) : each);
  }
  const std::int64_t outputs = extent(w, is_transposed ? 3 : 0).least();
  const std::vector<DimRow> shape = shape_of(x);
  const TensorType& type = graph_.value(result).type.tensor();
  const std::int64_t channels = type.dims[parts.x_layout.find('C')].value().value_or(1);
  std::vector<std::int64_t> least;
  for (const DimRow& dim : shape) least.push_back(dim.least());
  operation.row.further = {
      {"CO", PythonValue::number(outputs)},
      {"KH", PythonValue::number(extent(w, 1).least())},
      {"KW", PythonValue::number(extent(w, 2).least())},
      {"dilate", number_or_tuple(parts.window.dilations)},
      {"dim_lower_bounds", PythonValue::list(least)},
      {"epilogue", PythonValue::string(epilogue_name(steps))},
      {"epilogue_alignment",
       PythonValue::number(alignment_of(channels, dtype_name(tensors_[x].dtype)))},
      {"group", PythonValue::number(parts.groups)},
      {"pad", number_or_tuple({parts.window.pads[0], parts.window.pads[1]})},
      {"split_k", PythonValue()},
      {"stride", number_or_tuple(parts.window.strides)},
      {"workspace", PythonValue::number(0)},
  };
  operation.row.exec_path = convolution_conditions(shape);
  if (const auto choices = noted_choices(graph_, result)) {
    auto profiled = profiled_convolution(shape, type.dims[parts.x_layout.find('N')], *choices);
    if (profiled) operation.row.exec_path = std::move(profiled);
  }
  add_image(std::move(operation), parts.x_layout, result);
}

bool DumpExporter::try_convolution(const Node& node) {
  const auto parts = convolution_parts(graph_, node);
  if (!parts) return false;
  std::vector<std::size_t> further;
  for (std::size_t k = 2; k < node.operands.size(); ++k)
    further.push_back(tensor_of(node.operands[k]));
  add_convolution(
      *parts, tensor_of(node.operands[0]), tensor_of(node.operands[1]), further,
      further.empty() ? std::vector<EpilogueStep>() : std::vector<EpilogueStep>{EpilogueStep::Bias},
      node.results[0]);
  return true;
}

bool DumpExporter::try_pool(const Node& node) {
  const bool is_maximum = node.op->name == "max_pool";
  for (const std::string_view name : {"auto_pad", "out_layout", "ceil_mode", "index_order"}) {
    if (node.attrs.find(name) != nullptr) return false;
  }
  const ValueId result = node.results[0];
  const TensorType& x_type = graph_.value(node.operands[0]).type.tensor();
  const std::string layout = layout_of(graph_, node.operands[0], "NCHW"), image(image_layout(4));
  const auto window = frontends::window_numbers(node, 2);
  if (node.results.size() != 1 || x_type.rank() != 4 || !is_permutation_of(layout, "NCHW") ||
      !window) {
    return false;
  }
  for (const auto* list : {&window->kernel, &window->strides, &window->pads, &window->dilations}) {
    if (!is_one_number(*list)) return false;
  }
  const std::int64_t kernel = window->kernel[0], pad = window->pads[0];
  if (window->dilations[0] != 1 || pad < 0) return false;
  if (!is_maximum && frontends::flag_of(node, "count_include_pad") != (pad != 0)) return false;
  const std::size_t x = change_layout(tensor_of(node.operands[0]), layout, image);
  Operation operation;
  operation.row.op = is_maximum ? "max_pool2d" : "avg_pool2d";
  operation.inputs = {x};
  operation.row.further = {{"KH", PythonValue::number(kernel)},
                           {"KW", PythonValue::number(kernel)},
                           {"kernel_size", PythonValue::number(kernel)},
                           {"pad", PythonValue::number(pad)},
                           {"reduce_func", PythonValue::string(is_maximum ? "max" : "avg")},
                           {"stride", PythonValue::number(window->strides[0])}};
  operation.row.exec_path.emplace();
  operation.row.exec_path->entries.push_back({"true", PythonValue::string("")});
  add_image(std::move(operation), layout, result);
  return true;
}

// ---- matrix products ----

std::optional<std::string> DumpExporter::gemm_base(const Graph& graph, const Node& node) const {
  if (node.operands.size() != 2 || node.attrs.find("out_dtype") != nullptr) return std::nullopt;
  for (const ValueId operand : node.operands) {
    if (!operand || !graph.value(operand).type.is_tensor()) return std::nullopt;
  }
  const TensorType& a = graph.value(node.operands[0]).type.tensor();
  const TensorType& b = graph.value(node.operands[1]).type.tensor();
  if (node.op->name == "matmul") {
    if (a.rank() >= 2 && a.rank() <= 10 && b.rank() == 2) return "gemm_rrr";
    if (a.rank() == 3 && b.rank() == 3) return "bmm_rrr";
    return std::nullopt;
  }
  if (node.op->name != "einsum" || a.rank() < 2 || a.rank() > 10) return std::nullopt;
  const std::string equation = frontends::plain_equation(frontends::text_of(node, "equation"));
  for (const std::string_view base : {"gemm_rcr", "gemm_crr", "gemm_ccr", "bmm_rcr", "bmm_crr",
                                      "bmm_ccr", "bmm_rrc", "bmm_rcc", "bmm_crc", "bmm_ccc"}) {
    const Composite product = *parse_composite(base);
    const bool is_batched = product.base == Composite::Base::Bmm;
    if (is_batched ? a.rank() != 3 || b.rank() != 3 || !(a.dims[0] == b.dims[0])
                   : b.rank() != 2 || (product.layout[0] == 'c' && a.rank() != 2)) {
      continue;
    }
    if (frontends::plain_equation(gemm_equation(product, a.rank())) == equation)
      return std::string(base);
  }
  return std::nullopt;
}

GemmExtents DumpExporter::gemm_extents(const Composite& composite,
                                       const std::vector<std::size_t>& operands) const {
  const auto extent_of = [&](const char* name, std::size_t operand, std::size_t from,
                             std::size_t to) {
    GemmExtents::Extent made{name, 1, 1, ""};
    for (std::size_t axis = from; axis < to; ++axis) {
      const DimRow& dim = extent(operands[operand], axis);
      // Saturates at the largest extent.
      if (__builtin_mul_overflow(made.least, dim.least(), &made.least)) made.least = kMaxExtent;
      if (__builtin_mul_overflow(made.greatest, dim.greatest(), &made.greatest))
        made.greatest = kMaxExtent;
      const auto* symbol = std::get_if<std::string>(&dim.symbolic_value);
      if (to == from + 1 && symbol != nullptr) made.symbol = *symbol;
    }
    return made;
  };
  const std::size_t a = tensors_[operands[0]].extents.size(),
                    b = tensors_[operands[1]].extents.size();
  const std::size_t lead = composite.base == Composite::Base::Bmm ? 1 : 0;
  const bool is_row = composite.layout[0] == 'r';
  GemmExtents product;
  if (lead == 1) product.extents.push_back(extent_of("B", 0, 0, 1));
  product.extents.push_back(is_row ? extent_of("M", 0, lead, a - 1) : extent_of("M", 0, a - 1, a));
  product.extents.push_back(composite.layout[1] == 'r' ? extent_of("N", 1, b - 1, b)
                                                       : extent_of("N", 1, b - 2, b - 1));
  product.extents.push_back(is_row ? extent_of("K", 0, a - 1, a) : extent_of("K", 0, lead, a - 1));
  return product;
}

void DumpExporter::add_gemm(const std::string& op, const std::vector<std::size_t>& operands,
                            const std::vector<EpilogueStep>& steps, ValueId result) {
  const Composite composite = *parse_composite(op);
  const bool is_batched = composite.base == Composite::Base::Bmm;
  const TensorType& type = graph_.value(result).type.tensor();
  Operation operation;
  operation.row.op = op;
  operation.row.has_profiler = true;
  operation.inputs = operands;
  const std::int64_t last = type.dims.back().value().value_or(1);
  operation.row.further = {
      {"alpha", PythonValue::real_number(1)},
      {"epilogue", PythonValue::string(epilogue_name(steps))},
      {"epilogue_alignment",
       PythonValue::number(alignment_of(last, dtype_name(tensors_[operands[0]].dtype)))},
      {"f_ab_alignment", PythonValue()},
      {"num_sources", PythonValue::number(source_count(steps))},
      {"permute_shape", PythonValue::string("")},
      {"split_k", PythonValue::number(1)},
      {"workspace", PythonValue::number(0)},
  };
  if (const auto choices = noted_choices(graph_, result)) {
    operation.row.exec_path = profiled_gemm(gemm_extents(composite, operands), *choices);
  }
  operation.input_accessors = operands.size();
  operation.output_accessors = 1;
  // M comes from the first operand, N from the second.
  Origins origins;
  const std::size_t a_rank = tensors_[operands[0]].extents.size();
  const std::size_t leading = is_batched ? 1 : a_rank - 2;
  for (std::size_t k = 0; k < leading; ++k) origins.emplace_back(std::make_pair(std::size_t{0}, k));
  const auto rows =
      std::make_pair(std::size_t{0}, composite.layout[0] == 'r' ? leading : leading + 1);
  const std::size_t b_leading = is_batched ? 1 : 0;
  const auto columns =
      std::make_pair(std::size_t{1}, composite.layout[1] == 'r' ? b_leading + 1 : b_leading);
  origins.emplace_back(composite.layout[2] == 'r' ? rows : columns);
  origins.emplace_back(composite.layout[2] == 'r' ? columns : rows);
  add(std::move(operation), {result}, {origins});
}

bool DumpExporter::try_gemm(const Node& node) {
  const auto base = gemm_base(graph_, node);
  if (!base) return false;
  add_gemm(*base, {tensor_of(node.operands[0]), tensor_of(node.operands[1])}, {}, node.results[0]);
  return true;
}

// Exports a contraction and its epilogue, with each step once and in operand order.
bool DumpExporter::try_composite(const Node& node) {
  const Graph& body = node.bodies.at(0);
  if (body.outputs().size() != 1 || node.results.size() != 1 || !node.results[0] || !body.first())
    return false;
  const Node& first = body.node(body.first());
  const auto convolution = convolution_parts(body, first);
  const auto product = convolution ? std::nullopt : gemm_base(body, first);
  if (!convolution && !product) return false;
  if (convolution && convolution->base == "conv2d_depthwise") return false;
  std::vector<ValueId> used = first.operands;
  std::vector<EpilogueStep> steps;
  if (used.size() == 3) steps.push_back(EpilogueStep::Bias);
  ValueId value = first.results[0];
  for (const NodeId id : body.nodes_in_order()) {
    if (id == body.first()) continue;
    const Node& inner = body.node(id);
    if (inner.operands.empty() || inner.operands.size() > 2 || inner.operands[0] != value ||
        inner.results.size() != 1)
      return false;
    const bool has_operand = inner.operands.size() == 2;
    if (has_operand && (!inner.operands[1] || !body.value(inner.operands[1]).type.is_tensor()))
      return false;
    const bool is_row = has_operand && body.value(inner.operands[1]).type.tensor().rank() == 1;
    const std::string attrs = attributes_text(inner);
    std::optional<EpilogueStep> step;
    for (const EpilogueStep each :
         {EpilogueStep::Bias, EpilogueStep::Add, EpilogueStep::Mul, EpilogueStep::Relu,
          EpilogueStep::Sigmoid, EpilogueStep::Tanh, EpilogueStep::Gelu, EpilogueStep::FastGelu,
          EpilogueStep::HardSwish, EpilogueStep::Swish, EpilogueStep::Softmax}) {
      const bool fits_bias =
          each != EpilogueStep::Bias || (steps.empty() && is_row && !convolution);
      if (!step && op_of(each) == inner.op->name && attributes_of(each) == attrs && fits_bias &&
          takes_operand(each) == has_operand) {
        step = each;
      }
    }
    if (!step) return false;
    steps.push_back(*step);
    if (has_operand) used.push_back(inner.operands[1]);
    value = inner.results[0];
  }
  auto name = composite_name(convolution ? convolution->base : *product, steps);
  // AITemplate's GEMMs with epilogues take a transposed weight (N, K).
  const bool transposes_weight = !name && product == "gemm_rrr";
  if (transposes_weight) name = composite_name("gemm_rcr", steps);
  if (!name || body.outputs()[0] != value || used != body.inputs() || body.node_count() < 2)
    return false;
  std::vector<std::size_t> operands;
  for (const ValueId operand : node.operands) operands.push_back(tensor_of(operand));
  if (convolution) {
    add_convolution(*convolution, operands[0], operands[1], {operands.begin() + 2, operands.end()},
                    steps, node.results[0]);
  } else {
    if (transposes_weight) operands[1] = change_layout(operands[1], "KN", "NK");
    add_gemm(*name, operands, steps, node.results[0]);
  }
  return true;
}

// ---- reductions ----

bool DumpExporter::try_normalization(const Node& node) {
  const std::string& op = node.op->name;
  const std::size_t x = tensor_of(node.operands[0]);
  const std::size_t rank = tensors_[x].extents.size();
  const auto last = static_cast<std::int64_t>(rank) - 1;
  if (node.results.size() != 1 || node.attrs.find("stash") != nullptr) return false;
  const std::int64_t stated = frontends::integer_of(node, "axis").value_or(0);
  const std::int64_t axis = stated < 0 ? stated + static_cast<std::int64_t>(rank) : stated;
  Operation operation;
  for (const ValueId operand : node.operands) operation.inputs.push_back(tensor_of(operand));
  const PythonValue eps = PythonValue::real_number(frontends::real_of(node, "epsilon"));
  if (op == "identity") {
    operation.row.op = op;
  } else if (op == "softmax") {
    if (rank < 2 || axis != last) return false;
    operation.row.op = op;
    operation.row.further = {{"dim", PythonValue::number(last)}};
  } else if (op == "layer_norm") {
    if (axis < 1 || axis > last || node.operands.size() != 3) return false;
    operation.row.op = "layernorm";
    operation.row.further = {{"beta_constant", PythonValue()},
                             {"default_normalized_shape", PythonValue()},
                             {"eps", eps},
                             {"gamma_constant", PythonValue()},
                             {"normalized_shape", PythonValue::number(last - axis + 1)}};
    operation.input_accessors = operation.output_accessors = 1;
  } else {
    if (axis != last || !extent(x, rank - 1).is_static()) return false;
    const std::int64_t groups = frontends::integer_of(node, "groups").value_or(1);
    operation.row.op = "groupnorm";
    operation.row.further = {
        {"beta_constant", PythonValue()},
        {"eps", eps},
        {"gamma_constant", PythonValue()},
        {"num_channels", PythonValue::number(extent(x, rank - 1).least())},
        {"num_groups", PythonValue::number(groups)},
        {"workspace", PythonValue::number(group_norm_workspace(extent(x, 0), groups))}};
  }
  Origins origins;
  for (std::size_t k = 0; k < rank; ++k) origins.emplace_back(std::make_pair(std::size_t{0}, k));
  add(std::move(operation), {node.results[0]}, {origins});
  return true;
}

bool DumpExporter::try_reduction(const Node& node) {
  const std::size_t x = tensor_of(node.operands[0]);
  const std::size_t rank = tensors_[x].extents.size();
  const auto axes = frontends::integers_of(node, "axes");
  if (node.operands.size() != 1 || !axes || axes->size() != 1 ||
      frontends::flag_of(node, "noop_if_empty"))
    return false;
  const std::int64_t axis =
      axes->front() < 0 ? axes->front() + static_cast<std::int64_t>(rank) : axes->front();
  const bool keeps = frontends::flag_of(node, "keep_axes");
  Operation operation;
  operation.row.op = node.op->name;
  operation.inputs = {x};
  operation.row.further = {{"keepdim", PythonValue::boolean(keeps)},
                           {"output_type", PythonValue()},
                           {"reduction_axes", PythonValue::list(std::vector<std::int64_t>{axis})}};
  operation.output_accessors = 1;
  Origins origins;
  for (std::size_t k = 0; k < rank; ++k) {
    const bool is_reduced = static_cast<std::int64_t>(k) == axis;
    if (!is_reduced) origins.emplace_back(std::make_pair(std::size_t{0}, k));
    if (is_reduced && keeps) origins.emplace_back();
  }
  add(std::move(operation), {node.results[0]}, {origins});
  return true;
}

}  // namespace tenon::documents::aitemplate
