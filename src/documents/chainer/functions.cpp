#include "documents/chainer/functions.h"

#include "base/text.h"
#include "frontends/known_names.h"

#include <algorithm>

namespace tenon::documents::chainer {
namespace {

// Attributes of each class; private ones, with an underscore, are not listed.
struct ClassAttributes {
  std::string_view classes, attributes;
};
constexpr std::string_view kBaseAttributes =
    "rank lazy_grad_sum stack chainerx_device is_elementwise output_layouts use_cudnn use_ideep";
constexpr ClassAttributes kClassAttributes[] = {
    {"LeakyReLU", "slope"},
    {"ELU", "alpha"},
    {"ClippedReLU", "cap"},
    {"Softplus", "beta beta_inv"},
    {"AddConstant SubFromConstant MulConstant DivFromConstant PowVarConst", "value"},
    {"MultiAdd", "len"},
    {"LocalResponseNormalization", "n k alpha beta unit_scale scale indexes y"},
    {"Softmax LogSoftmax Concat ExpandDims Squeeze", "axis"},
    {"SplitAxis", "axis indices_or_sections indices sections"},
    {"Transpose", "axes"},
    {"GetItem", "slices"},
    {"Reshape", "shape"},
    {"Sum", "axis keepdims"},
    {"Dropout", "dropout_ratio mask return_mask states"},
    {"BatchNormalization",
     "axis key_axis decay eps expander mean var inv_std running_mean running_var forward_data"},
    {"FixedBatchNormalization", "axis key_axis eps expander inv_std inv_var"},
    {"MatMul", "transa transb transc dtype"},
    {"SoftmaxCrossEntropy",
     "cache_score class_weight ignore_label normalize reduce soft_target soft_target_loss eps y"},
    {"Convolution2DFunction", "sy sx ph pw dy dx groups cover_all cudnn_fast"},
    {"Deconvolution2DFunction", "sy sx ph pw dy dx groups cover_all outh outw"},
    {"MaxPooling2D AveragePooling2D", "kh kw sy sx ph pw cover_all return_indices"},
    {"Unpooling2D", "kh kw sy sx ph pw cover_all return_indices outh outw"},
    {"ResizeImages", "out_H out_W mode align_corners"},
    {"EmbedIDFunction", "ignore_label"},
};

}  // namespace

void FunctionView::refuse_unknown_attributes() const {
  std::string known(kBaseAttributes);
  for (const ClassAttributes& row : kClassAttributes) {
    const std::vector<std::string> classes = split(row.classes, ' ');
    if (std::ranges::find(classes, function().name) != classes.end())
      known += concat(" ", row.attributes);
  }
  for (const ChainerAttribute& attribute : function().attributes) {
    if (attribute.name.starts_with("_")) continue;
    try {
      frontends::require_attribute(function().name, attribute.name, known);
    } catch (Error& problem) {
      throw problem.at(source_, ", ", place_of_attribute(function(), attribute.name));
    }
  }
}

const frontends::JsonValue* FunctionView::find(std::string_view attribute) const {
  const ChainerAttribute* found = function().find(attribute);
  return found == nullptr ? nullptr : &found->value;
}

const frontends::JsonValue& FunctionView::get(std::string_view attribute) const {
  if (const frontends::JsonValue* found = find(attribute)) return *found;
  throw error(attribute,
              concat("the function ", function().name, " needs the attribute '", attribute, "'"));
}

Error FunctionView::error(std::string_view attribute, std::string summary) const {
  return Error(std::move(summary)).at(source_, ", ", place_of_attribute(function(), attribute));
}

bool FunctionView::has(std::string_view attribute) const {
  const frontends::JsonValue* found = find(attribute);
  return found != nullptr && !std::holds_alternative<std::nullptr_t>(found->value);
}

std::int64_t FunctionView::integer(std::string_view attribute, std::int64_t low, std::int64_t high,
                                   std::optional<std::int64_t> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  const auto* value = held_by<std::int64_t>(get(attribute));
  if (value == nullptr)
    throw error(attribute, concat("the attribute '", attribute, "' is no integer"));
  if (*value < low || *value > high) {
    throw error(attribute, concat("the attribute '", attribute, "' is out of range"))
        .expected(low, " to ", high)
        .got(*value);
  }
  return *value;
}

double FunctionView::real(std::string_view attribute, std::optional<double> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  const frontends::JsonValue& json = get(attribute);
  if (const auto* integer = held_by<std::int64_t>(json)) return static_cast<double>(*integer);
  if (const auto* value = held_by<double>(json)) return *value;
  throw error(attribute, concat("the attribute '", attribute, "' is no number"));
}

bool FunctionView::flag(std::string_view attribute, std::optional<bool> otherwise) const {
  if (otherwise && !has(attribute)) return *otherwise;
  const auto* value = held_by<bool>(get(attribute));
  if (value == nullptr)
    throw error(attribute, concat("the attribute '", attribute, "' is not true or false"));
  return *value;
}

const std::string& FunctionView::text(std::string_view attribute) const {
  const auto* value = held_by<std::string>(get(attribute));
  if (value == nullptr)
    throw error(attribute, concat("the attribute '", attribute, "' is no text"));
  return *value;
}

std::vector<std::int64_t> FunctionView::integers(std::string_view attribute) const {
  const frontends::JsonValue& json = get(attribute);
  if (const auto* one = held_by<std::int64_t>(json)) return {*one};
  const auto* array = held_by<frontends::JsonValue::Array>(json);
  if (array == nullptr)
    throw error(attribute, concat("the attribute '", attribute, "' is no list of integers"));
  std::vector<std::int64_t> list;
  for (const frontends::JsonValue& element : *array) {
    const auto* value = held_by<std::int64_t>(element);
    if (value == nullptr || *value < -kMaxExtentAttribute || *value > kMaxExtentAttribute) {
      throw error(attribute,
                  concat("the attribute '", attribute, "' is no list of integers in range"));
    }
    list.push_back(*value);
  }
  return list;
}

std::size_t FunctionView::axis(std::string_view attribute, std::size_t rank) const {
  const auto bound = static_cast<std::int64_t>(rank);
  const std::int64_t value = integer(attribute, -bound, bound - 1);
  return static_cast<std::size_t>(value < 0 ? value + bound : value);
}

std::int64_t WindowAxis::count(std::int64_t extent, std::int64_t kernel) const {
  const std::int64_t room = extent + 2 * pad - reach(kernel) + (covers_all ? stride - 1 : 0);
  return room < 0 ? 0 : room / stride + 1;
}

const FunctionRule* find_rule(std::string_view name) {
  for (const auto family :
       {window_functions(), elementwise_functions(), shape_functions(), reduction_functions()}) {
    for (const FunctionRule& rule : family) {
      if (rule.name == name) return &rule;
    }
  }
  return nullptr;
}

const FunctionRule* find_rule_of(std::string_view op, FunctionRule::Number number) {
  for (const FunctionRule& rule : elementwise_functions()) {
    if (rule.op == op && rule.number == number) return &rule;
  }
  return nullptr;
}

std::vector<std::string> known_function_names() {
  std::vector<std::string> names;
  for (const auto family :
       {window_functions(), elementwise_functions(), shape_functions(), reduction_functions()}) {
    for (const FunctionRule& rule : family) names.emplace_back(rule.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tenon::documents::chainer
