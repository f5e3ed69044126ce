// Export of control flow, sequences, selection, texts, random numbers, signals and optimiser steps.
#include "base/error.h"
#include "frontends/onnx/export_node.h"

#include <bit>
#include <cctype>
#include <limits>

namespace tenon::onnx {
namespace {

using Names = std::vector<std::string>;

OnnxAttr flag_attr(const NodeExport& node, std::string_view from, const char* to) {
  return {to, std::int64_t{node.flag(from)}};
}

OnnxAttr element_attr(const NodeExport& node, const char* to) {
  return {to, std::int64_t{onnx_element_type(node.element("dtype"))}};
}

void add_list(std::vector<OnnxAttr>& attrs, const NodeExport& node, std::string_view from,
              const char* to) {
  if (std::vector<std::int64_t> values = node.integers(from); !values.empty()) {
    attrs.push_back({to, std::move(values)});
  }
}

Names slice(const Names& names, std::size_t first, std::size_t last) {
  last = std::min(last, names.size());
  return {names.begin() + static_cast<std::ptrdiff_t>(std::min(first, last)),
          names.begin() + static_cast<std::ptrdiff_t>(last)};
}

/// An ONNX input holding a dynamic attribute that is one integer: a scalar, or a list of one.
std::string integer_input(NodeExport& node, std::string_view attr, bool as_list = false) {
  if (!node.has(attr)) {
    const std::int64_t value = node.integer(attr);
    return node.constant(
        Tensor::of<std::int64_t>(DType::I64, as_list ? Shape{1} : Shape{}, {value}), attr);
  }
  const Type& type = node.operand_type(attr);
  const bool is_list = type.is_tensor() && type.tensor().rank() == 1;
  if (type.is_tensor() && is_list == as_list) return node.operand(attr);
  const std::string shape =
      node.integers_constant(as_list ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{});
  return node.emit_value("Reshape", {node.operand(attr), shape});
}

void write_if(NodeExport& node) {
  node.need_opset(13);
  const Names captured = slice(node.operands(), 1, node.operands().size());
  node.emit("If", {node.operand("condition")}, node.results(),
            {{"then_branch", OnnxBody{&node.node.bodies[0], captured}},
             {"else_branch", OnnxBody{&node.node.bodies[1], captured}}});
}

void write_loop(NodeExport& node) {
  node.need_opset(13);
  Names operands = node.operands();
  operands.resize(std::max<std::size_t>(operands.size(), 2));
  const auto first_captured = 2 + static_cast<std::size_t>(node.integer("carried_count"));
  node.emit(
      "Loop", slice(operands, 0, first_captured), node.results(),
      {{"body", OnnxBody{&node.node.bodies[0], slice(operands, first_captured, operands.size())}}});
}

void write_scan(NodeExport& node) {
  node.need_opset(11);
  const Names operands = node.operands();
  const auto first_captured =
      static_cast<std::size_t>(node.integer("state_count") + node.integer("input_count"));
  std::vector<OnnxAttr> attrs{
      {"body", OnnxBody{&node.node.bodies[0], slice(operands, first_captured, operands.size())}},
      {"num_scan_inputs", node.integer("input_count")}};
  add_list(attrs, node, "input_axes", "scan_input_axes");
  add_list(attrs, node, "input_reverse", "scan_input_directions");
  add_list(attrs, node, "output_axes", "scan_output_axes");
  add_list(attrs, node, "output_reverse", "scan_output_directions");
  node.emit("Scan", slice(operands, 0, first_captured), node.results(), std::move(attrs));
}

void write_sequence_map(NodeExport& node) {
  node.need_opset(17);
  const Names operands = node.operands();
  const auto first_captured = static_cast<std::size_t>(node.integer("input_count"));
  node.emit(
      "SequenceMap", slice(operands, 0, first_captured), node.results(),
      {{"body", OnnxBody{&node.node.bodies[0], slice(operands, first_captured, operands.size())}}});
}

/// An ONNX operator that takes the same operands and has no attribute.
struct Plain {
  std::string_view op;
  const char* op_type;
  int since;
};
constexpr Plain kPlain[] = {
    {"det", "Det", 11},
    {"optional_get_element", "OptionalGetElement", 18},
    {"optional_has_element", "OptionalHasElement", 18},
    {"sequence_at", "SequenceAt", 11},
    {"sequence_construct", "SequenceConstruct", 11},
    {"sequence_erase", "SequenceErase", 11},
    {"sequence_insert", "SequenceInsert", 11},
    {"sequence_length", "SequenceLength", 11},
    {"string_concat", "StringConcat", 20},
};

void write_plain(NodeExport& node) {
  for (const Plain& plain : kPlain) {
    if (plain.op != node.node.op->name) continue;
    node.need_opset(plain.since);
    node.emit(plain.op_type, node.operands(), node.results());
  }
}

void write_optional(NodeExport& node) {
  node.need_opset(15);
  std::vector<OnnxAttr> attrs;
  const Type& type = node.result_type();
  if (!node.has("x") && type.is_known()) attrs.push_back({"type", type.element()});
  node.emit("Optional", node.operands(), node.results(), std::move(attrs));
}

void write_sequence_empty(NodeExport& node) {
  node.need_opset(11);
  node.emit("SequenceEmpty", {}, node.results(), {element_attr(node, "dtype")});
}

void write_concat_from_sequence(NodeExport& node) {
  node.need_opset(11);
  node.emit("ConcatFromSequence", node.operands(), node.results(),
            {{"axis", node.integer("axis")}, flag_attr(node, "new_axis", "new_axis")});
}

void write_split_to_sequence(NodeExport& node) {
  node.need_opset(11);
  node.emit("SplitToSequence", node.operands(), node.results(),
            {{"axis", node.integer("axis")}, flag_attr(node, "keep_axis", "keepdims")});
}

void write_top_k(NodeExport& node) {
  node.need_opset(11);
  Names results = node.results();
  results.resize(2);
  node.emit("TopK", {node.operand("x"), integer_input(node, "k", true)}, results,
            {{"axis", node.integer("axis")},
             flag_attr(node, "largest", "largest"),
             flag_attr(node, "sorted", "sorted")});
}

void write_unique(NodeExport& node) {
  node.need_opset(11);
  std::vector<OnnxAttr> attrs{flag_attr(node, "sorted", "sorted")};
  if (node.has_attr("axis")) attrs.push_back({"axis", node.integer("axis")});
  node.emit("Unique", {node.operand("x")}, node.results(), std::move(attrs));
}

void write_non_max_suppression(NodeExport& node) {
  node.need_opset(11);
  node.emit("NonMaxSuppression", node.operands(), node.results(),
            {flag_attr(node, "center_point_box", "center_point_box")});
}

void write_string_split(NodeExport& node) {
  node.need_opset(20);
  std::vector<OnnxAttr> attrs{{"delimiter", node.text("delimiter")}};
  if (node.has_attr("max_splits")) attrs.push_back({"maxsplit", node.integer("max_splits")});
  Names results = node.results();
  if (results.size() < 2 || results[1].empty()) results = {results[0], node.fresh("counts")};
  node.emit("StringSplit", {node.operand("x")}, results, std::move(attrs));
}

void write_regex_full_match(NodeExport& node) {
  node.need_opset(20);
  node.emit("RegexFullMatch", {node.operand("x")}, node.results(),
            {{"pattern", node.text("pattern")}});
}

std::string upper_case(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  return text;
}

void write_string_normalizer(NodeExport& node) {
  node.need_opset(10);
  std::vector<OnnxAttr> attrs{{"case_change_action", upper_case(node.text("case_change"))},
                              flag_attr(node, "is_case_sensitive", "is_case_sensitive")};
  if (!node.texts("stopwords").empty()) attrs.push_back({"stopwords", node.texts("stopwords")});
  node.emit("StringNormalizer", {node.operand("x")}, node.results(), std::move(attrs));
}

void write_tfidf_vectorizer(NodeExport& node) {
  node.need_opset(9);
  std::vector<OnnxAttr> attrs{{"mode", upper_case(node.text("mode"))},
                              {"min_gram_length", node.integer("min_gram_length")},
                              {"max_gram_length", node.integer("max_gram_length")},
                              {"max_skip_count", node.integer("max_skip_count")},
                              {"ngram_counts", node.integers("ngram_counts")},
                              {"ngram_indexes", node.integers("ngram_indexes")}};
  add_list(attrs, node, "pool_integers", "pool_int64s");
  if (!node.texts("pool_texts").empty())
    attrs.push_back({"pool_strings", node.texts("pool_texts")});
  if (!node.reals("weights").empty()) attrs.push_back({"weights", node.reals("weights")});
  node.emit("TfIdfVectorizer", {node.operand("x")}, node.results(), std::move(attrs));
}

// ONNX's seeds are floats; one that came from none is left to the reader.
void add_seed(std::vector<OnnxAttr>& attrs, const NodeExport& node) {
  const std::int64_t seed = node.integer("seed");
  if (seed < std::numeric_limits<std::int32_t>::min() ||
      seed > std::numeric_limits<std::int32_t>::max()) {
    return;
  }
  const auto number = std::bit_cast<float>(static_cast<std::int32_t>(seed));
  if (number == number) attrs.push_back({"seed", static_cast<double>(number)});
}

void write_random(NodeExport& node) {
  const bool is_normal = node.node.op->name == "random_normal";
  std::vector<OnnxAttr> attrs{
      element_attr(node, "dtype"),
      {is_normal ? "mean" : "low", node.real(is_normal ? "mean" : "low")},
      {is_normal ? "scale" : "high", node.real(is_normal ? "deviation" : "high")}};
  add_seed(attrs, node);
  const std::string op_type = is_normal ? "RandomNormal" : "RandomUniform";
  const Type& type = node.result_type();
  if (type.is_tensor() && all_constant(type.tensor().dims)) {
    attrs.push_back({"shape", constants(type.tensor().dims)});
    node.emit(op_type, {}, node.results(), std::move(attrs));
    return;
  }
  node.need_opset(9);
  const std::string like = node.emit_value("ConstantOfShape", {node.integers_input("shape")});
  node.emit(op_type + "Like", {like}, node.results(), std::move(attrs));
}

void write_bernoulli(NodeExport& node) {
  node.need_opset(15);
  std::vector<OnnxAttr> attrs;
  if (node.has_attr("dtype")) attrs.push_back(element_attr(node, "dtype"));
  add_seed(attrs, node);
  node.emit("Bernoulli", {node.operand("x")}, node.results(), std::move(attrs));
}

void write_multinomial(NodeExport& node) {
  node.need_opset(7);
  std::vector<OnnxAttr> attrs{{"sample_size", node.integer("sample_count")},
                              element_attr(node, "dtype")};
  add_seed(attrs, node);
  node.emit("Multinomial", {node.operand("x")}, node.results(), std::move(attrs));
}

void write_dft(NodeExport& node) {
  node.need_opset(17);
  std::vector<OnnxAttr> attrs{flag_attr(node, "inverse", "inverse"),
                              flag_attr(node, "onesided", "onesided")};
  Names inputs{node.operand("x"), ""};
  if (node.has("length") || node.has_attr("length")) inputs[1] = integer_input(node, "length");
  if (node.has("axis")) node.need_opset(20);
  if (node.opset() >= 20) {
    inputs.push_back(integer_input(node, "axis"));
  } else {
    attrs.push_back({"axis", node.integer("axis")});
  }
  node.emit("DFT", inputs, node.results(), std::move(attrs));
}

void write_stft(NodeExport& node) {
  node.need_opset(17);
  Names inputs{node.operand("signal"), integer_input(node, "frame_step"), node.operand("window")};
  if (node.has("frame_length") || node.has_attr("frame_length")) {
    inputs.push_back(integer_input(node, "frame_length"));
  }
  node.emit("STFT", inputs, node.results(), {flag_attr(node, "onesided", "onesided")});
}

void write_signal_window(NodeExport& node) {
  node.need_opset(17);
  std::string op_type = node.text("kind") + "Window";
  op_type.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(op_type.front())));
  node.emit(op_type, {integer_input(node, "size")}, node.results(),
            {flag_attr(node, "periodic", "periodic"), element_attr(node, "output_datatype")});
}

void write_mel_weight_matrix(NodeExport& node) {
  node.need_opset(17);
  node.emit("MelWeightMatrix",
            {integer_input(node, "mel_bins"), integer_input(node, "dft_length"),
             node.operand("sample_rate"), node.operand("lower_edge"), node.operand("upper_edge")},
            node.results(), {element_attr(node, "output_datatype")});
}

void write_image_decode(NodeExport& node) {
  node.need_opset(20);
  const std::string format = node.text("pixel_format");
  node.emit("ImageDecoder", {node.operand("x")}, node.results(),
            {{"pixel_format", format == "grayscale" ? "Grayscale" : upper_case(format)}});
}

constexpr const char* kTrainingExport = "ai.onnx.preview.training";

void write_adagrad(NodeExport& node) {
  node.emit("Adagrad", node.operands(), node.results(),
            {{"decay_factor", node.real("rate_decay")},
             {"epsilon", node.real("epsilon")},
             {"norm_coefficient", node.real("weight_decay")}},
            kTrainingExport);
}

void write_adam(NodeExport& node) {
  node.emit("Adam", node.operands(), node.results(),
            {{"alpha", node.real("alpha")},
             {"beta", node.real("beta")},
             {"epsilon", node.real("epsilon")},
             {"norm_coefficient", node.real("weight_decay")},
             {"norm_coefficient_post", node.real("weight_decay_after")}},
            kTrainingExport);
}

void write_momentum(NodeExport& node) {
  node.emit("Momentum", node.operands(), node.results(),
            {{"alpha", node.real("alpha")},
             {"beta", node.real("beta")},
             {"mode", std::string(node.flag("nesterov") ? "nesterov" : "standard")},
             {"norm_coefficient", node.real("weight_decay")}},
            kTrainingExport);
}

constexpr ExportRule control_exports[] = {
    {"adagrad", write_adagrad},
    {"adam", write_adam},
    {"bernoulli", write_bernoulli},
    {"concat_from_sequence", write_concat_from_sequence},
    {"det", write_plain},
    {"dft", write_dft},
    {"if", write_if},
    {"image_decode", write_image_decode},
    {"loop", write_loop},
    {"mel_weight_matrix", write_mel_weight_matrix},
    {"momentum", write_momentum},
    {"multinomial", write_multinomial},
    {"non_max_suppression", write_non_max_suppression},
    {"optional", write_optional},
    {"optional_get_element", write_plain},
    {"optional_has_element", write_plain},
    {"random_normal", write_random},
    {"random_uniform", write_random},
    {"regex_full_match", write_regex_full_match},
    {"scan", write_scan},
    {"sequence_at", write_plain},
    {"sequence_construct", write_plain},
    {"sequence_empty", write_sequence_empty},
    {"sequence_erase", write_plain},
    {"sequence_insert", write_plain},
    {"sequence_length", write_plain},
    {"sequence_map", write_sequence_map},
    {"signal_window", write_signal_window},
    {"split_to_sequence", write_split_to_sequence},
    {"stft", write_stft},
    {"string_concat", write_plain},
    {"string_normalizer", write_string_normalizer},
    {"string_split", write_string_split},
    {"tfidf_vectorizer", write_tfidf_vectorizer},
    {"top_k", write_top_k},
    {"unique", write_unique},
};

}  // namespace

std::span<const ExportRule> control_export_rules() { return control_exports; }

}  // namespace tenon::onnx
