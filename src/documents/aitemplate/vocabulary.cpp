#include "documents/aitemplate/vocabulary.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <array>

namespace tenon::documents::aitemplate {
namespace {

constexpr auto kFuncs = std::to_array<FuncInfo>({
    {"ADD", 1, "add", 2},
    {"SUB", 2, "sub", 2},
    {"MUL", 3, "mul", 2},
    {"DIV", 4, "div", 2},
    {"TANH", 5, "tanh"},
    {"COS", 6, "cos"},
    {"SIN", 7, "sin"},
    {"SIGN", 8, "sign"},
    {"ABS", 9, "abs"},
    {"LOGE", 10, "log"},
    {"EXP", 11, "exp"},
    {"SQRT", 12, "sqrt"},
    {"MAX", 13, "maximum", 2},
    {"MIN", 14, "minimum", 2},
    {"SIGMOID", 15, "sigmoid"},
    {"LRELU", 16, "leaky_relu", 1, 1},
    {"HARDTANH", 17, "clip", 3},
    {"RELU", 18, "relu"},
    {"NAN_TO_NUM", 19, "", 1, 3},
    {"CLAMP_NAN_TO_NUM", 20, "", 1, 3},
    {"SILU", 21, "swish"},
    {"POW", 22, "pow", 2},
    {"GELU", 23, "gelu"},
    {"FASTGELU", 24, "gelu", 1, 0, "{approximate = tanh}"},
    {"SOFTPLUS", 25, "softplus", 1, 2},
    {"ELU", 26, "elu", 1, 1},
    {"SOFTSIGN", 27, "softsign"},
    {"FLOOR_DIV", 28, "", 2},
    {"CELU", 29, "celu", 1, 1},
    {"FLOOR", 30, "floor"},
});

struct DTypeName {
  std::string_view name;
  DType dtype;
};
// The exporter writes the first name of a type.
constexpr auto kDTypes = std::to_array<DTypeName>({
    {"float16", DType::F16},
    {"float32", DType::F32},
    {"bfloat16", DType::BF16},
    {"int32", DType::I32},
    {"int64", DType::I64},
    {"bool", DType::Bool},
    {"half", DType::F16},
    {"float", DType::F32},
    {"int", DType::I32},
    // Extensions for types that AITemplate lacks.
    {"float64", DType::F64},
    {"int16", DType::I16},
    {"int8", DType::I8},
    {"uint64", DType::U64},
    {"uint32", DType::U32},
    {"uint16", DType::U16},
    {"uint8", DType::U8},
    {"complex64", DType::C64},
    {"complex128", DType::C128},
});

struct StepInfo {
  EpilogueStep step;
  std::string_view word, op, attributes;
  bool takes_operand;
};
constexpr auto kSteps = std::to_array<StepInfo>({
    {EpilogueStep::Bias, "bias", "add", "", true},
    {EpilogueStep::Add, "add", "add", "", true},
    {EpilogueStep::Mul, "mul", "mul", "", true},
    {EpilogueStep::Relu, "relu", "relu", "", false},
    {EpilogueStep::Sigmoid, "sigmoid", "sigmoid", "", false},
    {EpilogueStep::Tanh, "tanh", "tanh", "", false},
    {EpilogueStep::Gelu, "gelu", "gelu", "", false},
    {EpilogueStep::FastGelu, "fast_gelu", "gelu", "{approximate = tanh}", false},
    {EpilogueStep::HardSwish, "hardswish", "hard_swish", "", false},
    {EpilogueStep::Swish, "swish", "swish", "", false},
    {EpilogueStep::Softmax, "softmax", "softmax", "", false},
});

const StepInfo& info(EpilogueStep step) { return kSteps[static_cast<std::size_t>(step)]; }

// AITemplate's suffixes of each base; "" is the base alone.
constexpr auto kConvEndings =
    std::to_array<std::string_view>({"", "bias", "bias_relu", "bias_sigmoid", "bias_hardswish",
                                     "bias_add", "bias_add_relu", "bias_add_hardswish"});
constexpr auto kTransposedEndings = std::to_array<std::string_view>({"", "bias", "bias_relu"});
constexpr auto kRcrEndings = std::to_array<std::string_view>({"",
                                                              "bias",
                                                              "bias_relu",
                                                              "bias_gelu",
                                                              "bias_fast_gelu",
                                                              "bias_sigmoid",
                                                              "bias_tanh",
                                                              "bias_hardswish",
                                                              "bias_swish",
                                                              "bias_mul",
                                                              "bias_add",
                                                              "bias_add_add",
                                                              "bias_add_relu",
                                                              "bias_add_add_relu",
                                                              "bias_mul_add",
                                                              "bias_mul_tanh",
                                                              "bias_sigmoid_mul",
                                                              "bias_sigmoid_mul_tanh",
                                                              "bias_softmax",
                                                              "softmax",
                                                              "fast_gelu"});
constexpr auto kRrrEndings = std::to_array<std::string_view>({"", "bias"});
constexpr auto kBmmEndings = std::to_array<std::string_view>({"", "add"});

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string ending_of(const std::vector<EpilogueStep>& steps) {
  std::vector<std::string> words;
  for (const EpilogueStep step : steps) words.emplace_back(info(step).word);
  return join(words, "_");
}

// Strips a base name from the front of an operator's name.
std::optional<Composite> match_base(std::string_view op) {
  struct Prefix {
    std::string_view name;
    Composite::Base base;
  };
  constexpr auto prefixes = std::to_array<Prefix>({
      {"conv2d_depthwise", Composite::Base::Conv},
      {"conv2d_groups", Composite::Base::Conv},
      {"conv2d", Composite::Base::Conv},
      {"conv3d", Composite::Base::Conv},
      {"depthwise_conv3d", Composite::Base::Conv},
      {"transposed_conv2d", Composite::Base::TransposedConv},
  });
  Composite composite;
  for (const Prefix& prefix : prefixes) {
    if (op.substr(0, prefix.name.size()) != prefix.name) continue;
    composite.base = prefix.base;
    composite.base_name = prefix.name;
    return composite;
  }
  const bool is_gemm = op.substr(0, 5) == "gemm_", is_bmm = op.substr(0, 4) == "bmm_";
  if (!is_gemm && !is_bmm) return std::nullopt;
  const std::string_view layout = op.substr(is_gemm ? 5 : 4, 3);
  if (layout.size() != 3 || layout.find_first_not_of("rc") != std::string_view::npos)
    return std::nullopt;
  composite.base = is_gemm ? Composite::Base::Gemm : Composite::Base::Bmm;
  composite.layout = layout;
  composite.base_name = concat(is_gemm ? "gemm_" : "bmm_", layout);
  return composite;
}

}  // namespace

const FuncInfo* find_func(std::string_view name) {
  const auto found =
      std::find_if(kFuncs.begin(), kFuncs.end(), [&](const FuncInfo& f) { return f.name == name; });
  return found == kFuncs.end() ? nullptr : &*found;
}

const FuncInfo* find_func_of_op(std::string_view op, std::string_view attributes) {
  const auto found = std::find_if(kFuncs.begin(), kFuncs.end(), [&](const FuncInfo& f) {
    return f.op == op && f.words == attributes;
  });
  return found == kFuncs.end() ? nullptr : &*found;
}

std::optional<DType> dtype_of(std::string_view name) {
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                  [&](const DTypeName& d) { return d.name == name; });
  if (found != kDTypes.end()) return found->dtype;
  return parse_dtype(name);
}

std::string dtype_name(DType dtype) {
  const auto found = std::find_if(kDTypes.begin(), kDTypes.end(),
                                  [&](const DTypeName& d) { return d.dtype == dtype; });
  return found == kDTypes.end() ? to_string(dtype) : std::string(found->name);
}

std::int64_t alignment_of(std::int64_t extent, std::string_view dtype_name) {
  const auto dtype = dtype_of(dtype_name);
  if (!dtype) return 1;
  for (std::int64_t width = *dtype == DType::F16 || *dtype == DType::BF16 ? 8 : 4; width > 1;
       width /= 2) {
    if (is_float(*dtype) && extent % width == 0) return width;
  }
  return 1;
}

bool takes_operand(EpilogueStep step) { return info(step).takes_operand; }
std::string_view op_of(EpilogueStep step) { return info(step).op; }
std::string_view attributes_of(EpilogueStep step) { return info(step).attributes; }

std::optional<Composite> parse_composite(std::string_view op) {
  std::optional<Composite> composite = match_base(op);
  if (!composite) return std::nullopt;
  std::string_view rest = op.substr(composite->base_name.size());
  const std::string_view few = "_few_channels", same = "_identity";
  if (composite->is_convolution() && rest.ends_with(few)) rest.remove_suffix(few.size());
  if (composite->is_convolution() && rest.ends_with(same)) rest.remove_suffix(same.size());
  while (!rest.empty()) {
    const auto next = std::find_if(kSteps.begin(), kSteps.end(), [&](const StepInfo& step) {
      const std::string_view after = rest.substr(std::min(rest.size(), 1 + step.word.size()), 1);
      return rest.front() == '_' && rest.substr(1, step.word.size()) == step.word &&
             (after.empty() || after == "_");
    });
    if (next == kSteps.end()) return std::nullopt;
    composite->steps.push_back(next->step);
    rest.remove_prefix(1 + next->word.size());
  }
  return composite;
}

std::optional<std::string> composite_name(std::string_view base_name,
                                          const std::vector<EpilogueStep>& steps) {
  const std::string ending = ending_of(steps);
  const std::optional<Composite> base = match_base(base_name);
  if (!base) return std::nullopt;
  bool is_known = false;
  switch (base->base) {
    case Composite::Base::Conv:
      is_known = contains(kConvEndings, ending);
      break;
    case Composite::Base::TransposedConv:
      is_known = contains(kTransposedEndings, ending);
      break;
    case Composite::Base::Gemm:
      is_known = base->layout == "rcr"   ? contains(kRcrEndings, ending)
                 : base->layout == "rrr" ? contains(kRrrEndings, ending)
                                         : false;
      break;
    case Composite::Base::Bmm:
      is_known = contains(kBmmEndings, ending);
      break;
  }
  if (!is_known) return std::nullopt;
  return ending.empty() ? std::string(base_name) : concat(base_name, "_", ending);
}

std::string epilogue_name(const std::vector<EpilogueStep>& steps) {
  if (std::find(steps.begin(), steps.end(), EpilogueStep::Add) != steps.end() &&
      steps.front() == EpilogueStep::Bias) {
    return "LinearCombinationResidualBlock";
  }
  const EpilogueStep last = steps.empty() ? EpilogueStep::Bias : steps.back();
  switch (last) {
    case EpilogueStep::Relu:
      return "LinearCombinationRelu";
    case EpilogueStep::Sigmoid:
      return "LinearCombinationSigmoid";
    case EpilogueStep::Tanh:
      return "LinearCombinationTanh";
    case EpilogueStep::HardSwish:
      return "LinearCombinationHardSwish";
    case EpilogueStep::Gelu:
      return "LinearCombinationGELU";
    case EpilogueStep::FastGelu:
      return "LinearCombinationFastGELU";
    case EpilogueStep::Swish:
      return "LinearCombinationSilu";
    default:
      return "LinearCombination";
  }
}

std::string gemm_equation(const Composite& product, std::size_t rank) {
  const bool is_batched = product.base == Composite::Base::Bmm;
  const std::string& layout = product.layout;
  std::string leading = is_batched ? "b" : "";
  // A row-major first operand of a GEMM may have additional leading axes.
  for (std::size_t k = 2; !is_batched && k < rank; ++k)
    leading += static_cast<char>('a' + (k - 2) % 10);
  const std::string shared = is_batched ? "b" : "";
  const std::string a = leading + (layout[0] == 'r' ? "mk" : "km");
  const std::string b = shared + (layout[1] == 'r' ? "kn" : "nk");
  const std::string c = leading + (layout[2] == 'r' ? "mn" : "nm");
  return a + "," + b + "->" + c;
}

std::string c_safe(std::string_view name) {
  std::string safe;
  for (const char c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    safe += is_plain ? c : '_';
  }
  if (safe.empty() || (safe[0] >= '0' && safe[0] <= '9')) safe.insert(safe.begin(), '_');
  return safe;
}

// Both syntaxes agree on sums, products and quotients.
Dim parse_formula(std::string_view formula, const SymbolRanges& ranges) {
  std::string text;
  std::string word;
  for (std::size_t k = 0; k <= formula.size(); ++k) {
    const char c = k < formula.size() ? formula[k] : ' ';
    const bool is_part =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (is_part) {
      word += c;
      continue;
    }
    if (c == '(' && (word == "Max" || word == "Min" || word == "Mod")) {
      word[0] = static_cast<char>(word[0] - 'A' + 'a');
    }
    text += word;
    if (c == '*' && formula.substr(k, 2) == "**") {
      // Expands a power of a symbol to a product.
      const std::string_view digit = formula.substr(std::min(k + 2, formula.size()), 1);
      if (word.empty() || digit.empty() || digit[0] < '2' || digit[0] > '8') {
        throw Error("only small powers of symbols are understood").got(formula);
      }
      for (char n = '1'; n < digit[0]; ++n) text += "*" + word;
      k += 2;
    } else if (k < formula.size()) {
      text += c;
    }
    word.clear();
  }
  return parse_dim(text, ranges);
}

std::string print_formula(const Dim& dim) {
  const std::string text = to_string(dim);
  std::string formula, word;
  for (std::size_t k = 0; k <= text.size(); ++k) {
    const char c = k < text.size() ? text[k] : ' ';
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
      word += c;
      continue;
    }
    if (c == '(' && (word == "max" || word == "min" || word == "mod")) {
      word[0] = static_cast<char>(word[0] - 'a' + 'A');
    }
    formula += word;
    if (k < text.size()) formula += c;
    word.clear();
  }
  return formula;
}

std::string_view image_layout(std::size_t rank) { return rank == 5 ? "NDHWC" : "NHWC"; }
std::string_view weight_layout(std::size_t rank) { return rank == 5 ? "ODHWI" : "OHWI"; }

}  // namespace tenon::documents::aitemplate
