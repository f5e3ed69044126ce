#include "frontends/onnx/plain_ops.h"

#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/op_call.h"
#include "ops/definition/registry.h"

#include <algorithm>
#include <cctype>

namespace tenon::frontends::onnx {
namespace {

using Form = PlainAttr::Form;

std::string in_case(std::string text, int (*change)(int)) {
  for (char& letter : text) letter = static_cast<char>(change(static_cast<unsigned char>(letter)));
  return text;
}

std::vector<std::string_view> inputs_of(const PlainOp& row, const OpDef& op) {
  if (!row.inputs.empty()) return row.inputs;
  std::vector<std::string_view> names;
  for (const OperandDef& operand : op.operands) names.push_back(operand.name);
  return names;
}

Attr read_attr(const NodeImport& node, const PlainAttr& attr, AttrKind kind) {
  std::string name(attr.ours);
  switch (kind) {
    case AttrKind::Bool:
      return {std::move(name), node.integer(attr.theirs) != 0};
    case AttrKind::Integer:
      return {std::move(name), node.integer(attr.theirs)};
    case AttrKind::Real:
      return {std::move(name), node.real(attr.theirs)};
    case AttrKind::Element:
      return {std::move(name), to_string(node.element(attr.theirs, DType::F32))};
    case AttrKind::Integers:
      return {std::move(name), node.integers(attr.theirs)};
    case AttrKind::Reals:
      return {std::move(name), node.reals(attr.theirs)};
    case AttrKind::Texts:
      return {std::move(name), node.texts(attr.theirs)};
    default:
      break;
  }
  std::string text = node.text(attr.theirs);
  if (attr.form == Form::UpperCase) text = in_case(std::move(text), std::tolower);
  return {std::move(name), std::move(text)};
}

// Omits an empty list.
void add_attr(std::vector<OnnxAttr>& attrs, const NodeExport& node, const PlainAttr& attr) {
  const auto add = [&](auto value) {
    attrs.push_back({std::string(attr.theirs), std::move(value)});
  };
  const auto add_list = [&](auto list) {
    if (!list.empty() || attr.form == Form::Stated) add(std::move(list));
  };
  switch (node.node.op->find_attr(attr.ours)->kind) {
    case AttrKind::Bool:
      return add(std::int64_t{node.flag(attr.ours)});
    case AttrKind::Integer:
      return add(node.integer(attr.ours));
    case AttrKind::Real:
      return add(node.real(attr.ours));
    case AttrKind::Element:
      return add(std::int64_t{onnx_element_type(node.element(attr.ours))});
    case AttrKind::Integers:
      return add_list(node.integers(attr.ours));
    case AttrKind::Reals:
      return add_list(node.reals(attr.ours));
    case AttrKind::Texts:
      return add_list(node.texts(attr.ours));
    default:
      break;
  }
  const bool is_upper = attr.form == Form::UpperCase;
  add(is_upper ? in_case(node.text(attr.ours), std::toupper) : node.text(attr.ours));
}

// Returns an input for an attribute that is an input in ONNX; "" for the default.
std::string dynamic_input(NodeExport& node, std::string_view name) {
  const AttrDef& def = *node.node.op->find_attr(name);
  if (!node.has(name) && !node.has_attr(name)) return "";
  if (def.kind == AttrKind::Integer) return node.integer_input(name);
  if (def.kind == AttrKind::Reals) return node.reals_input(name);
  const AttrValue* given = node.node.attrs.find(name);
  const bool is_empty = given == nullptr || std::get<Dims>(*given).empty();
  return is_empty && !node.has(name) && !def.is_required ? "" : node.integers_input(name);
}

// Some operators gained integers, strings, wider bytes or additional modes in later opsets.
int opset_for_elements(const NodeExport& node) {
  const std::string_view op = node.node.op->name;
  const auto bits = [](const Type& type) { return info(type.tensor().dtype).bits; };
  if (op == "relu" && !is_float(node.operand_type("x").tensor().dtype)) return 14;
  if (op == "equal" && node.operand_type("a").tensor().dtype == DType::String) return 19;
  if (op == "quantize_linear" && bits(node.result_type()) == 16) return 21;
  if (op == "dequantize_linear" && bits(node.operand_type("x")) == 16) return 21;
  if (!op.starts_with("scatter_")) return 1;
  const std::string reduction = node.text("reduction");
  return reduction == "none" ? 1 : reduction == "add" || reduction == "mul" ? 16 : 18;
}

// Returns whether a node states an ONNX attribute with a value.
bool is_stated(const NodeImport& node, const PlainAttr& attr, const OpDef& op,
               const std::vector<std::string_view>& inputs) {
  const AttrDef& def = *op.find_attr(attr.ours);
  if (attr.form == Form::Former) {
    const auto input = std::ranges::find(inputs, attr.ours) - inputs.begin();
    return node.has_attr(attr.theirs) && !node.has_input(static_cast<std::size_t>(input));
  }
  if (!node.has_attr(attr.theirs)) return def.is_required;
  const bool may_be_none = attr.form == Form::Late && def.kind == AttrKind::Element;
  return !may_be_none || node.integer(attr.theirs) != 0;
}

}  // namespace

const PlainOp* find_plain(std::string_view op_type) {
  const auto found = std::ranges::find(plain_ops(), op_type, &PlainOp::op_type);
  return found == plain_ops().end() ? nullptr : &*found;
}

std::vector<Attr> plain_attrs(const NodeImport& node) {
  const PlainOp& row = *find_plain(node.op_type());
  const OpDef& op = find_op(row.op);
  std::vector<Attr> attrs;
  for (const PlainAttr& attr : row.attrs) {
    if (is_stated(node, attr, op, inputs_of(row, op)))
      attrs.push_back(read_attr(node, attr, op.find_attr(attr.ours)->kind));
  }
  return attrs;
}

std::vector<OnnxAttr> plain_attrs(NodeExport& node) {
  const PlainOp& row = *std::ranges::find(plain_ops(), node.node.op->name, &PlainOp::op);
  std::vector<OnnxAttr> attrs;
  for (const PlainAttr& attr : row.attrs) {
    const bool is_late = attr.form == Form::Late;
    if (attr.form == Form::Former || !node.has_attr(attr.ours)) continue;
    if (is_late && node.node.attrs.find(attr.ours) == nullptr) continue;
    node.need_opset(attr.since);
    add_attr(attrs, node, attr);
  }
  return attrs;
}

void import_plain(NodeImport& node) {
  const PlainOp& row = *find_plain(node.op_type());
  const OpDef& op = find_op(row.op);
  OpCall call(node, row.op);
  const std::vector<std::string_view> inputs = inputs_of(row, op);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const OperandDef& operand = op.operands[*op.operand_index(inputs[k])];
    if (operand.is_dynamic_attribute) {
      call.dynamic(inputs[k], k);
    } else if (operand.is_variadic) {
      call.operands(node.inputs());
    } else {
      call.operand(inputs[k], operand.is_optional ? node.input_or_none(k) : node.input(k));
    }
  }
  for (Attr& attr : plain_attrs(node)) call.attr(std::move(attr));
  const std::size_t wanted = std::max<std::size_t>(node.output_count(), 1);
  node.outputs(call.results(std::min(wanted, op.results.size())));
}

void write_plain(NodeExport& node) {
  const OpDef& op = *node.node.op;
  const PlainOp& row = *std::ranges::find(plain_ops(), op.name, &PlainOp::op);
  node.need_opset(std::max(row.since, opset_for_elements(node)));
  std::vector<std::string> inputs;
  for (const std::string_view name : inputs_of(row, op)) {
    const OperandDef& operand = op.operands[*op.operand_index(name)];
    if (operand.is_variadic) {
      inputs = node.operands();
    } else {
      inputs.push_back(operand.is_dynamic_attribute ? dynamic_input(node, name)
                                                    : node.operand(name));
    }
  }
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  node.emit(std::string(row.op_type), std::move(inputs), node.results(), plain_attrs(node),
            std::string(row.domain));
}

std::span<const PlainOp> plain_ops() {
  static const std::vector<PlainAttr> reduction_attrs = {{"keep_axes", "keepdims"},
                                                         {"noop_if_empty", "noop_with_empty_axes"},
                                                         {"axes", "axes", Form::Former}};
  static const std::vector<PlainAttr> slice_attrs = {{"starts", "starts", Form::Former},
                                                     {"ends", "ends", Form::Former},
                                                     {"axes", "axes", Form::Former}};
  static const std::vector<PlainOp> rows = {
      {"abs", "Abs", 6},
      {"acos", "Acos", 7},
      {"acosh", "Acosh", 9},
      {"add", "Add", 7},
      {"adagrad",
       "Adagrad",
       1,
       {{"rate_decay", "decay_factor"}, "epsilon", {"weight_decay", "norm_coefficient"}},
       {},
       kTraining},
      {"adam",
       "Adam",
       1,
       {"alpha",
        "beta",
        "epsilon",
        {"weight_decay", "norm_coefficient"},
        {"weight_decay_after", "norm_coefficient_post"}},
       {},
       kTraining},
      {"affine_grid", "AffineGrid", 20, {"align_corners"}},
      {"arg_max",
       "ArgMax",
       12,
       {"axis", {"keep_axes", "keepdims"}, {"select_last", "select_last_index"}}},
      {"arg_min",
       "ArgMin",
       12,
       {"axis", {"keep_axes", "keepdims"}, {"select_last", "select_last_index"}}},
      {"asin", "Asin", 7},
      {"asinh", "Asinh", 9},
      {"atan", "Atan", 7},
      {"atanh", "Atanh", 9},
      {"bit_and", "BitwiseAnd", 18},
      {"bit_cast", "BitCast", 26, {"to"}},
      {"bit_not", "BitwiseNot", 18},
      {"bit_or", "BitwiseOr", 18},
      {"bit_xor", "BitwiseXor", 18},
      {"cast_hint", "Identity"},
      {"ceil", "Ceil", 6},
      {"celu", "Celu", 12, {"alpha"}},
      {"center_crop_pad", "CenterCropPad", 18, {"axes"}},
      {"clip", "Clip", 12},
      {"compress", "Compress", 11, {"axis"}},
      {"concat", "Concat", 1, {"axis"}},
      {"concat_from_sequence", "ConcatFromSequence", 11, {"axis", "new_axis"}},
      {"cos", "Cos", 7},
      {"cosh", "Cosh", 9},
      {"cumprod", "CumProd", 26, {"exclusive", "reverse"}},
      {"cumsum", "CumSum", 14, {"exclusive", "reverse"}},
      {"depth_to_space",
       "DepthToSpace",
       11,
       {{"block", "blocksize"}, {"mode", "mode", Form::UpperCase}}},
      {"dequantize_linear",
       "DequantizeLinear",
       10,
       {{"axis", "axis", 13}, {"block_size", "block_size", 21}, {"to", "output_dtype", 23}}},
      {"det", "Det", 11},
      {"div", "Div", 7},
      {"einsum", "Einsum", 12, {"equation"}},
      {"elu", "Elu", 6, {"alpha"}},
      {"equal", "Equal", 11},
      {"erf", "Erf", 9},
      {"exp", "Exp", 6},
      {"expand", "Expand", 8},
      {"eye_like", "EyeLike", 9, {"k", "dtype"}},
      {"floor", "Floor", 6},
      {"gather", "Gather", 1, {"axis"}},
      {"gather_elements", "GatherElements", 11, {"axis"}},
      {"gather_nd", "GatherND", 12, {"batch_dims"}},
      {"gelu", "Gelu", 20, {"approximate"}},
      {"greater", "Greater", 9},
      {"greater_equal", "GreaterOrEqual", 12},
      // Modes had other names before.
      {"grid_sample", "GridSample", 20, {"mode", {"padding", "padding_mode"}, "align_corners"}},
      {"group_norm",
       "GroupNormalization",
       21,
       {"epsilon", {"stash", "stash_type"}, {"groups", "num_groups"}}},
      {"hard_sigmoid", "HardSigmoid", 6, {"alpha", "beta"}},
      {"hard_swish", "HardSwish", 14},
      {"hardmax", "Hardmax", 13, {"axis"}},
      {"identity", "Identity"},
      {"instance_norm", "InstanceNormalization", 6, {"epsilon"}},
      {"is_inf", "IsInf", 10, {{"positive", "detect_positive"}, {"negative", "detect_negative"}}},
      {"is_nan", "IsNaN", 9},
      {"layer_norm", "LayerNormalization", 17, {"epsilon", {"stash", "stash_type"}, "axis"}},
      {"leaky_relu", "LeakyRelu", 6, {"alpha"}},
      {"less", "Less", 9},
      {"less_equal", "LessOrEqual", 12},
      {"log", "Log", 6},
      {"log_softmax", "LogSoftmax", 13, {"axis"}},
      {"logical_and", "And", 7},
      {"logical_not", "Not"},
      {"logical_or", "Or", 7},
      {"logical_xor", "Xor", 7},
      {"lp_norm", "LpNormalization", 1, {"axis", "p"}},
      {"lrn", "LRN", 1, {"size", "alpha", "beta", "bias"}},
      {"matmul", "MatMul", 1},
      {"maximum", "Max", 12},
      {"mean_variance_norm", "MeanVarianceNormalization", 9, {{"axes", "axes", Form::Stated}}},
      {"mel_weight_matrix",
       "MelWeightMatrix",
       17,
       {{"dtype", "output_datatype"}},
       {"mel_bins", "dft_length", "sample_rate", "lower_edge", "upper_edge"}},
      {"minimum", "Min", 12},
      {"mish", "Mish", 18},
      {"momentum",
       "Momentum",
       1,
       {"alpha", "beta", {"weight_decay", "norm_coefficient"}},
       {},
       kTraining},
      {"mul", "Mul", 7},
      {"neg", "Neg", 6},
      {"nll_loss", "NegativeLogLikelihoodLoss", 13, {"reduction", "ignore_index"}},
      {"non_max_suppression", "NonMaxSuppression", 11, {"center_point_box"}},
      {"nonzero", "NonZero", 9},
      {"one_hot", "OneHot", 11, {"axis"}, {"indices", "depth", "values"}},
      {"optional_get_element", "OptionalGetElement", 18},
      {"optional_has_element", "OptionalHasElement", 18},
      {"pow", "Pow", 12},
      {"prelu", "PRelu", 9},
      {"quantize_linear",
       "QuantizeLinear",
       10,
       {{"axis", "axis", 13},
        {"block_size", "block_size", 21},
        {"to", "output_dtype", 21},
        {"precision", "precision", 23},
        {"saturate", "saturate", 19}}},
      {"range", "Range", 11},
      {"reciprocal", "Reciprocal", 6},
      {"reduce_l1", "ReduceL1", 18, reduction_attrs},
      {"reduce_l2", "ReduceL2", 18, reduction_attrs},
      {"reduce_log_sum", "ReduceLogSum", 18, reduction_attrs},
      {"reduce_log_sum_exp", "ReduceLogSumExp", 18, reduction_attrs},
      {"reduce_max", "ReduceMax", 18, reduction_attrs},
      {"reduce_mean", "ReduceMean", 18, reduction_attrs},
      {"reduce_min", "ReduceMin", 18, reduction_attrs},
      {"reduce_prod", "ReduceProd", 18, reduction_attrs},
      {"reduce_sum", "ReduceSum", 13, reduction_attrs},
      {"reduce_sum_square", "ReduceSumSquare", 18, reduction_attrs},
      {"regex_full_match", "RegexFullMatch", 20, {"pattern"}},
      {"relu", "Relu", 6},
      {"reshape",
       "Reshape",
       5,
       {{"allow_zero", "allowzero", 14}, {"shape", "shape", Form::Former}}},
      {"resize",
       "Resize",
       13,
       {"axes",
        "mode",
        {"coordinates", "coordinate_transformation_mode"},
        {"rounding", "nearest_mode"},
        {"aspect", "keep_aspect_ratio_policy"},
        {"cubic_a", "cubic_coeff_a"},
        "exclude_outside",
        "antialias",
        {"extrapolation", "extrapolation_value"}}},
      {"reverse_sequence", "ReverseSequence", 10, {"time_axis", "batch_axis"}},
      {"roi_align",
       "RoiAlign",
       16,
       {"mode",
        {"height", "output_height"},
        {"width", "output_width"},
        "sampling_ratio",
        "spatial_scale"}},
      {"rms_norm", "RMSNormalization", 23, {"epsilon", {"stash", "stash_type"}, "axis"}},
      {"rotary_embedding",
       "RotaryEmbedding",
       23,
       {"interleaved", {"rotary_size", "rotary_embedding_dim"}}},
      {"round", "Round", 11},
      {"scatter_elements", "ScatterElements", 11, {"axis", {"reduction", "reduction", 16}}},
      {"scatter_elements", "Scatter", 9, {"axis", {"reduction", "reduction", 16}}},
      {"scatter_nd", "ScatterND", 11, {{"reduction", "reduction", 16}}},
      {"selu", "Selu", 6, {"alpha", "gamma"}},
      {"sequence_at", "SequenceAt", 11},
      {"sequence_construct", "SequenceConstruct", 11},
      {"sequence_empty", "SequenceEmpty", 11, {"dtype"}},
      {"sequence_erase", "SequenceErase", 11},
      {"sequence_insert", "SequenceInsert", 11},
      {"sequence_length", "SequenceLength", 11},
      {"shape", "Shape", 1, {{"start", "start", 15}, {"end", "end", 15}}},
      {"shrink", "Shrink", 9, {{"bound", "lambd"}, "bias"}},
      {"sigmoid", "Sigmoid", 6},
      {"sign", "Sign", 9},
      {"sin", "Sin", 7},
      {"sinh", "Sinh", 9},
      {"size", "Size"},
      {"slice", "Slice", 10, slice_attrs},
      {"slice", "DynamicSlice", 1, slice_attrs},
      {"softmax", "Softmax", 13, {"axis"}},
      {"softplus", "Softplus"},
      {"softsign", "Softsign"},
      {"space_to_depth", "SpaceToDepth", 1, {{"block", "blocksize"}}},
      {"split_to_sequence", "SplitToSequence", 11, {"axis", {"keep_axis", "keepdims"}}},
      {"sqrt", "Sqrt", 6},
      {"squeeze", "Squeeze", 13, {{"axes", "axes", Form::Former}}},
      {"stft", "STFT", 17, {"onesided"}, {"signal", "frame_step", "window", "frame_length"}},
      {"stop_fusion", "Identity"},
      {"string_concat", "StringConcat", 20},
      {"string_normalizer",
       "StringNormalizer",
       10,
       {{"case_change", "case_change_action", Form::UpperCase}, "is_case_sensitive", "stopwords"}},
      {"string_split", "StringSplit", 20, {"delimiter", {"max_splits", "maxsplit"}}},
      {"sub", "Sub", 7},
      {"swish", "Swish", 24, {"alpha"}},
      {"tan", "Tan", 7},
      {"tanh", "Tanh", 6},
      {"tensor_scatter", "TensorScatter", 24, {"axis", "mode"}},
      {"tfidf_vectorizer",
       "TfIdfVectorizer",
       9,
       {{"mode", "mode", Form::UpperCase},
        "min_gram_length",
        "max_gram_length",
        "max_skip_count",
        {"ngram_counts", "ngram_counts", Form::Stated},
        {"ngram_indexes", "ngram_indexes", Form::Stated},
        {"pool_integers", "pool_int64s"},
        {"pool_texts", "pool_strings"},
        "weights"}},
      {"thresholded_relu", "ThresholdedRelu", 10, {"alpha"}},
      {"tile", "Tile"},
      {"top_k", "TopK", 11, {"axis", "largest", "sorted"}},
      {"transpose", "Transpose", 1, {"perm"}},
      {"trilu", "Trilu", 14, {"upper"}},
      {"unique", "Unique", 11, {"sorted", "axis"}},
      {"unsqueeze", "Unsqueeze", 13, {{"axes", "axes", Form::Former}}},
      {"where", "Where", 9},
  };
  return rows;
}

}  // namespace tenon::frontends::onnx
