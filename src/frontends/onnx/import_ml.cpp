// ai.onnx.ml: features, labels, linear models. import_trees.cpp has trees, import_svm.cpp support
// vector machines.
#include "base/error.h"
#include "frontends/onnx/ml_scores.h"
#include "ops/definition/var_ops.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tenon::frontends::onnx {
namespace {

Var constant_texts(NodeImport& node, const std::vector<std::string>& texts) {
  return node.build.constant(Tensor::of_strings({static_cast<std::int64_t>(texts.size())}, texts));
}

void import_array_feature_extractor(NodeImport& node) {
  Var x = node.input(0);
  const Dims dims = node.dims(x);
  if (dims.size() == 1) x = reshape_to(x, {1, dims[0]});
  const Dims places = node.dims(node.input(1));
  Dim count = 1;
  for (const Dim& dim : places) count = count * dim;
  node.output(node.call("gather", {x, reshape_to(node.input(1), {count})}, {{"axis", -1}}));
}

void import_binarizer(NodeImport& node) {
  const Var x = node.input(0);
  const Var threshold = node.build.scalar(node.real("threshold", 0), x);
  node.output(cast_to(node.call("greater", {x, threshold}), node.dtype(x)));
}

void import_scaler(NodeImport& node) {
  Var x = cast_to(node.input(0), DType::F32);
  const auto list = [&](const char* name) {
    const std::vector<double> values = node.reals(name);
    return constant_of_reals(node, values, {static_cast<std::int64_t>(values.size())});
  };
  if (node.has_attr("offset")) x = x - list("offset");
  if (node.has_attr("scale")) x = x * list("scale");
  node.output(node.has_attr("offset") || node.has_attr("scale") ? x : node.call("identity", {x}));
}

// A divisor of 0 leaves the row unchanged.
void import_normalizer(NodeImport& node) {
  const Var x = cast_to(node.input(0), DType::F32);
  const std::string norm = node.text("norm", "MAX");
  const char* reduction = norm == "MAX"  ? "reduce_max"
                          : norm == "L1" ? "reduce_l1"
                          : norm == "L2" ? "reduce_l2"
                                         : nullptr;
  if (reduction == nullptr) {
    throw Error("Normalizer: no such norm").expected("MAX, L1 or L2").got(norm);
  }
  const Var size = node.call(reduction, {x}, {{"axes", Attr::Integers{-1}}});
  const Var is_zero = node.call("equal", {size, node.build.scalar(0, size)});
  node.output(x / node.call("where", {is_zero, node.build.scalar(1, size), size}));
}

void import_imputer(NodeImport& node) {
  const Var x = node.input(0);
  const bool is_real = is_float(node.dtype(x));
  const std::vector<double> reals = node.reals("imputed_value_floats");
  const std::vector<std::int64_t> integers = node.integers("imputed_value_int64s");
  if (reals.empty() && integers.empty()) throw Error("Imputer: it says no values to put in");
  const std::vector<double> values =
      reals.empty() ? std::vector<double>(integers.begin(), integers.end()) : reals;
  const Var imputed =
      constant_of_reals(node, values, {static_cast<std::int64_t>(values.size())}, node.dtype(x));
  const double replaced = is_real ? node.real("replaced_value_float", 0)
                                  : static_cast<double>(node.integer("replaced_value_int64", 0));
  const Var is_missing = std::isnan(replaced)
                             ? node.call("is_nan", {x})
                             : node.call("equal", {x, node.build.scalar(replaced, x)});
  node.output(node.call("where", {is_missing, imputed, x}));
}

// Inputs of rank one are columns; each is cropped or zero-padded to its stated width.
void import_feature_vectorizer(NodeImport& node) {
  const std::vector<std::int64_t> widths = node.integers("inputdimensions");
  std::vector<Var> parts;
  for (std::size_t k = 0; k < node.input_count(); ++k) {
    Var x = cast_to(node.input(k), DType::F32);
    Dims dims = node.dims(x);
    if (dims.empty() || dims.size() > 2) {
      throw Error("FeatureVectorizer: an input holds no features").got(node.type(x));
    }
    if (dims.size() == 1) dims = {dims[0], 1};
    x = reshape_to(x, dims);
    if (k < widths.size() && !(dims[1] == Dim(widths[k]))) {
      if (!dims[1].is_constant()) node.unsupported("the width of an input is not known");
      const std::int64_t missing = widths[k] - dims[1].constant();
      x = missing > 0 ? node.call("pad", {x}, {{"pads", Attr::Integers{0, 0, 0, missing}}})
                      : node.call("slice", {x},
                                  {{"starts", Attr::Integers{0}},
                                   {"ends", Attr::Integers{widths[k]}},
                                   {"axes", Attr::Integers{1}}});
    }
    parts.push_back(x);
  }
  node.output(node.call("concat", parts, {{"axis", 1}}));
}

/// Keys, values and the default value.
struct Dictionary {
  Tensor keys, values, otherwise;
};

Tensor text_tensor(const std::vector<std::string>& texts) {
  return Tensor::of_strings({static_cast<std::int64_t>(texts.size())}, texts);
}

Tensor scalar_of(Tensor one) {
  if (one.size() != 1) throw Error("LabelEncoder: the default is not one value").got(one.type());
  return one.reshaped({});
}

// `side` is "keys" or "values".
Tensor label_tensor(const NodeImport& node, const std::string& side) {
  for (const char* suffix : {"_tensor", "_as_tensor"}) {
    if (!node.has_attr(side + suffix)) continue;
    const Tensor tensor = node.tensor(side + suffix);
    return tensor.reshaped({tensor.size()});
  }
  if (node.has_attr(side + "_strings")) return text_tensor(node.texts(side + "_strings"));
  if (node.has_attr(side + "_int64s")) return Tensor::of_integers(node.integers(side + "_int64s"));
  const std::vector<double> reals = node.reals(side + "_floats");
  if (reals.empty()) throw Error(concat("LabelEncoder: it has no ", side));
  return Tensor::of(DType::F32, {static_cast<std::int64_t>(reals.size())}, reals);
}

Tensor default_label(const NodeImport& node, DType dtype) {
  for (const char* name : {"default_tensor", "default_as_tensor"}) {
    if (node.has_attr(name)) return scalar_of(node.tensor(name).converted(dtype));
  }
  if (dtype == DType::String) {
    return Tensor::of_strings({}, {node.text("default_string", "_Unused")});
  }
  if (is_integer(dtype)) {
    return Tensor::of<std::int64_t>(dtype, {}, {node.integer("default_int64", -1)});
  }
  return Tensor::scalar(dtype, node.real("default_float", -0.0));
}

void output_lookup(NodeImport& node, const Dictionary& dictionary) {
  node.output(node.call("lookup", {node.input(0), node.build.constant(dictionary.keys),
                                   node.build.constant(dictionary.values),
                                   node.build.constant(dictionary.otherwise)}));
}

// Maps texts to their positions in a list, or positions to texts, depending on the input.
Dictionary numbered(const NodeImport& node, const std::vector<std::string>& texts,
                    const std::vector<std::int64_t>& numbers) {
  if (texts.size() != numbers.size()) {
    throw Error(concat(node.op_type(), ": texts and numbers differ in count"))
        .got(texts.size(), " and ", numbers.size());
  }
  const Tensor words = text_tensor(texts), places = Tensor::of_integers(numbers);
  if (node.dtype(node.input(0)) == DType::String) {
    return {words, places,
            Tensor::of<std::int64_t>(DType::I64, {}, {node.integer("default_int64", -1)})};
  }
  return {places, words, Tensor::of_strings({}, {node.text("default_string", "_Unused")})};
}

void import_label_encoder(NodeImport& node) {
  if (const std::vector<std::string> classes = node.texts("classes_strings"); !classes.empty()) {
    std::vector<std::int64_t> numbers(classes.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    return output_lookup(node, numbered(node, classes, numbers));
  }
  const Tensor values = label_tensor(node, "values");
  output_lookup(node, {label_tensor(node, "keys"), values, default_label(node, values.dtype())});
}

void import_category_mapper(NodeImport& node) {
  output_lookup(node, numbered(node, node.texts("cats_strings"), node.integers("cats_int64s")));
}

void import_one_hot_encoder(NodeImport& node) {
  const bool is_text = node.dtype(node.input(0)) == DType::String;
  const std::vector<std::string> texts = node.texts("cats_strings");
  const std::vector<std::int64_t> numbers = node.integers("cats_int64s");
  const auto count = static_cast<std::int64_t>(is_text ? texts.size() : numbers.size());
  if (count == 0) throw Error("OneHotEncoder: it has no categories of the input's kind");
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const bool is_strict = node.integer("zeros", 1) == 0;
  const Var x = is_text ? node.input(0) : cast_to(node.input(0), DType::I64);
  const Var keys = is_text ? constant_texts(node, texts) : node.build.integers(numbers);
  const Var otherwise = node.build.constant(Tensor::of<std::int64_t>(DType::I64, {}, {-1}));
  const Var place =
      node.call("lookup", {x, keys, node.build.integers(order), is_strict ? Var() : otherwise},
                {{"strict", is_strict}});
  const Var column = node.call("unsqueeze", {place}, {{"axes", Attr::Integers{-1}}});
  node.output(cast_to(node.call("equal", {column, node.build.integers(order)}), DType::F32));
}

// Coefficients are by target.
Var linear_scores(NodeImport& node, std::int64_t targets) {
  const Var x = feature_rows(node);
  const std::vector<double> weights = node.reals("coefficients"),
                            intercepts = node.reals("intercepts");
  const auto count = static_cast<std::int64_t>(weights.size());
  if (targets < 1 || count % targets != 0) {
    throw Error(concat(node.op_type(), ": the coefficients do not come out even"))
        .got(count, " coefficients of ", targets, " targets");
  }
  const Var matrix =
      node.call("transpose", {constant_of_reals(node, weights, {targets, count / targets})},
                {{"perm", Attr::Integers{1, 0}}});
  const Var scores = node.call("matmul", {x, matrix});
  return intercepts.empty() ? scores : scores + constant_of_reals(node, intercepts, {targets});
}

void import_linear_regressor(NodeImport& node) {
  const Var scores = linear_scores(node, node.integer("targets", 1));
  node.output(transformed_scores(node, scores, node.text("post_transform", "NONE")));
}

void import_linear_classifier(NodeImport& node) {
  const auto given = static_cast<std::int64_t>(
      std::max(node.texts("classlabels_strings").size(), node.integers("classlabels_ints").size()));
  const auto count =
      std::max<std::int64_t>(1, static_cast<std::int64_t>(node.reals("intercepts").size()));
  const std::string transform = node.text("post_transform", "NONE");
  const Var scores = linear_scores(node, count);
  const Dim rows = node.dims(scores)[0];
  if (count > 1) {
    const Var best = node.call("arg_max", {scores}, {{"axis", 1}, {"keep_axes", false}});
    node.output(0, labels_at(node, best, count));
    node.output(1, transformed_scores(node, scores, transform));
    return;
  }
  const Var is_second = node.call("greater", {scores, node.build.scalar(0, scores)});
  node.output(0, labels_at(node, reshape_to(cast_to(is_second, DType::I64), {rows}), 2));
  if (given == 2 && transform != "PROBIT") {
    node.output(1, both_classes(scores, transform, OneColumn::Share));
  } else {
    node.output(1, transformed_scores(node, scores, transform));
  }
}

// A list of maps from labels to scores is imported as the matrix of scores; the labels of its
// columns are in the graph's metadata, as JSON.
void import_zip_map(NodeImport& node) {
  nlohmann::json labels = node.texts("classlabels_strings");
  if (labels.empty()) labels = node.integers("classlabels_int64s");
  const Var x = node.input(0);
  const Dims dims = node.dims(x);
  node.output(dims.size() == 1 ? reshape_to(x, {1, dims[0]}) : node.call("identity", {x}));
  using nlohmann::json;
  node.build.graph().metadata[concat("columns of ", node.output_name(0))] =
      labels.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Adds the values of a map as a separate input of the model, named in the metadata; the original
// input has the keys.
Var map_values(NodeImport& node) {
  const Graph& graph = node.build.graph();
  const std::string& keys = graph.value(ValueId(node.input(0).id())).name;
  for (const auto& [key, text] : graph.metadata) {
    if (!key.starts_with("map ")) continue;
    const auto names = nlohmann::json::parse(text, nullptr, false);
    if (!names.is_array() || names.size() != 2 || names[0] != keys) continue;
    if (const ValueId found = graph.find(names[1].get<std::string>()))
      return {&node.build, static_cast<std::uint32_t>(found.index())};
  }
  node.unsupported("its input is no map that is an input of the model");
}

Var zero_like(NodeImport& node, Var values) {
  return node.dtype(values) == DType::String ? node.build.constant(Tensor::of_strings({}, {""}))
                                             : node.build.scalar(0, values);
}

// Looks up each word of a vocabulary in the map; missing words give the default.
void import_dict_vectorizer(NodeImport& node) {
  const Var keys = node.input(0), values = map_values(node);
  const std::vector<std::string> texts = node.texts("string_vocabulary");
  const std::vector<std::int64_t> numbers = node.integers("int64_vocabulary");
  const auto count = static_cast<std::int64_t>(std::max(texts.size(), numbers.size()));
  const Var words = texts.empty() ? node.build.integers(numbers) : constant_texts(node, texts);
  const Var found = node.call("lookup", {words, keys, values, zero_like(node, values)});
  node.output(reshape_to(found, {1, count}));
}

// Keys are positions. SPARSE: one column per position below max_map; DENSE: the entries in
// ascending order of keys.
void import_cast_map(NodeImport& node) {
  const Var keys = node.input(0), values = map_values(node);
  const Dim count = node.dims(keys)[0];
  const std::string form = node.text("map_form", "DENSE"),
                    wanted = node.text("cast_to", "TO_FLOAT");
  const DType dtype = wanted == "TO_FLOAT"    ? DType::F32
                      : wanted == "TO_INT64"  ? DType::I64
                      : wanted == "TO_STRING" ? DType::String
                                              : node.dtype(values);
  Var found;
  Dim width = count;
  if (form == "SPARSE") {
    std::vector<std::int64_t> places(
        static_cast<std::size_t>(std::max<std::int64_t>(node.integer("max_map", 1), 0)));
    std::iota(places.begin(), places.end(), 0);
    width = static_cast<std::int64_t>(places.size());
    found =
        node.call("lookup", {node.build.integers(places), keys, values, zero_like(node, values)});
  } else {
    const Var others = reshape_to(keys, {count, 1}), own = reshape_to(keys, {1, count});
    const Var is_before = cast_to(node.call("less", {others, own}), DType::I64);
    const Var rank =
        node.call("reduce_sum", {is_before}, {{"axes", Attr::Integers{0}}, {"keep_axes", false}});
    const Var zero = node.build.constant(Tensor::of(DType::I64, {}, std::vector<std::int64_t>{0}));
    const Var one = node.build.constant(Tensor::of(DType::I64, {}, std::vector<std::int64_t>{1}));
    const Var places = node.call("range", {zero, node.call("size", {keys}), one});
    found = node.call("lookup", {places, rank, values, zero_like(node, values)});
  }
  const bool is_text = (dtype == DType::String) != (node.dtype(values) == DType::String);
  found =
      is_text ? node.call("cast_text", {found}, {{"to", to_string(dtype)}}) : cast_to(found, dtype);
  node.output(reshape_to(found, {1, width}));
}

constexpr Handler ml_table[] = {
    {"ArrayFeatureExtractor", import_array_feature_extractor, "ai.onnx.ml"},
    {"Binarizer", import_binarizer, "ai.onnx.ml"},
    {"CastMap", import_cast_map, "ai.onnx.ml"},
    {"CategoryMapper", import_category_mapper, "ai.onnx.ml"},
    {"DictVectorizer", import_dict_vectorizer, "ai.onnx.ml"},
    {"FeatureVectorizer", import_feature_vectorizer, "ai.onnx.ml"},
    {"Imputer", import_imputer, "ai.onnx.ml"},
    {"LabelEncoder", import_label_encoder, "ai.onnx.ml"},
    {"LinearClassifier", import_linear_classifier, "ai.onnx.ml"},
    {"LinearRegressor", import_linear_regressor, "ai.onnx.ml"},
    {"Normalizer", import_normalizer, "ai.onnx.ml"},
    {"OneHotEncoder", import_one_hot_encoder, "ai.onnx.ml"},
    {"Scaler", import_scaler, "ai.onnx.ml"},
    {"ZipMap", import_zip_map, "ai.onnx.ml"},
};

}  // namespace

std::span<const Handler> ml_handlers() { return ml_table; }

}  // namespace tenon::frontends::onnx
