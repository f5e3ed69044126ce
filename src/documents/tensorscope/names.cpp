#include "documents/tensorscope/names.h"

#include "base/text.h"
#include "documents/tensorscope/tf_ops.h"

#include <utility>

namespace tenon::documents::tensorscope {
namespace {

constexpr std::string_view optimizer_suffix = "-LayoutOptimizer";
constexpr std::string_view to_nchw_suffix = "-TransposeNHWCToNCHW-LayoutOptimizer";
constexpr std::string_view to_nhwc_suffix = "-TransposeNCHWToNHWC-LayoutOptimizer";
constexpr std::string_view folding_prefix = "ConstantFolding/";
constexpr std::string_view shapes_mark = "-matshapes-";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Removes "-NUMBER" from the end.
std::optional<std::int64_t> take_number(std::string_view& name) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const auto number = plain_number(name.substr(dash + 1));
  if (number) name = name.substr(0, dash);
  return number;
}

// Returns the position after the component "gradients" or "gradients_N" of a name.
std::optional<std::size_t> after_gradients(std::string_view name) {
  constexpr std::string_view word = "gradients";
  for (std::size_t at = name.find(word); at != std::string_view::npos;
       at = name.find(word, at + 1)) {
    if (at != 0 && name[at - 1] != '/') continue;
    const std::size_t slash = name.find('/', at);
    if (slash == std::string_view::npos) return std::nullopt;
    if (numbered(name.substr(at, slash - at)).stem == word) return slash + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> plain_number(std::string_view text) {
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
  }
  return parse_integer(text);
}

std::optional<LayoutTranspose> layout_transpose(std::string_view name) {
  LayoutTranspose found;
  found.to_nchw = name.ends_with(to_nchw_suffix);
  if (!found.to_nchw && !name.ends_with(to_nhwc_suffix)) return std::nullopt;
  name.remove_suffix(to_nchw_suffix.size());
  const auto input = take_number(name);
  if (!input) return std::nullopt;
  found.input = *input;
  if (!found.to_nchw) {
    found.ordinal = take_number(name);
    if (!found.ordinal) return std::nullopt;
  }
  found.node = name;
  return found;
}

std::string permutation_name(bool to_nchw) {
  return std::string("PermConst") + (to_nchw ? "NHWCToNCHW" : "NCHWToNHWC") +
         std::string(optimizer_suffix);
}

std::optional<InputConstant> permuted_constant(std::string_view name) {
  if (!name.ends_with(optimizer_suffix)) return std::nullopt;
  name.remove_suffix(optimizer_suffix.size());
  const auto input = take_number(name);
  if (!input) return std::nullopt;
  return InputConstant{name, *input};
}

std::optional<FoldedShape> folded_shape(std::string_view name) {
  const std::size_t mark = name.rfind(shapes_mark);
  if (!name.starts_with(folding_prefix) || mark == std::string_view::npos) return std::nullopt;
  const auto port = plain_number(name.substr(mark + shapes_mark.size()));
  if (!port || mark < folding_prefix.size()) return std::nullopt;
  return FoldedShape{name.substr(folding_prefix.size(), mark - folding_prefix.size()), *port};
}

std::optional<GradientName> gradient_name(std::string_view name) {
  constexpr std::string_view mark = "_grad/";
  const auto start = after_gradients(name);
  const std::size_t end = name.rfind(mark);
  if (!start || end == std::string_view::npos || end <= *start) return std::nullopt;
  return GradientName{name.substr(0, end + mark.size() - 1), name.substr(*start, end - *start),
                      name.substr(end + mark.size())};
}

bool is_in_gradients(std::string_view name) { return after_gradients(name).has_value(); }

std::string_view scope_of(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

std::string_view last_part(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? name : name.substr(slash + 1);
}

Numbered numbered(std::string_view part) {
  const std::size_t line = part.rfind('_');
  if (line == std::string_view::npos || line == 0) return {part, 0};
  const auto number = plain_number(part.substr(line + 1));
  return number ? Numbered{part.substr(0, line), *number} : Numbered{part, 0};
}

std::string_view op_in_name(std::string_view name) {
  if (layout_transpose(name)) return "Transpose";
  if (name.ends_with(optimizer_suffix) || name.starts_with(folding_prefix)) return "Const";
  if (name == "_SOURCE" || name == "_SINK") return "NoOp";
  const std::string_view part = last_part(name);
  const std::string_view stem = numbered(part).stem;
  if (part == "read") return "Identity";
  if (stem == "Variable") return "VariableV2";
  const OpInfo* op = find_tf_op(part);
  if (op == nullptr) op = find_tf_op(stem);
  if (op != nullptr) return op->name;
  // Default node names of TensorFlow's functions and arithmetic operators that differ from the
  // operator's name.
  constexpr std::pair<std::string_view, std::string_view> habits[] = {
      {"add", "Add"},
      {"concat", "ConcatV2"},
      {"div", "RealDiv"},
      {"gather", "GatherV2"},
      {"mul", "Mul"},
      {"one_hot", "OneHot"},
      {"pow", "Pow"},
      {"split", "Split"},
      {"stack", "Pack"},
      {"sub", "Sub"},
      {"transpose", "Transpose"},
      {"truediv", "RealDiv"},
      {"depthwise", "DepthwiseConv2dNative"}};
  for (const auto& [habit, meant] : habits) {
    if (stem == habit) return meant;
  }
  return {};
}

bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0, k = 0;
  while (i < a.size() && k < b.size()) {
    if (is_digit(a[i]) && is_digit(b[k])) {
      std::size_t i_end = i, k_end = k;
      while (i_end < a.size() && is_digit(a[i_end])) ++i_end;
      while (k_end < b.size() && is_digit(b[k_end])) ++k_end;
      while (i < i_end && a[i] == '0') ++i;
      while (k < k_end && b[k] == '0') ++k;
      const std::string_view x = a.substr(i, i_end - i), y = b.substr(k, k_end - k);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      i = i_end;
      k = k_end;
    } else {
      if (a[i] != b[k]) return a[i] < b[k];
      ++i;
      ++k;
    }
  }
  if (i < a.size() || k < b.size()) return i >= a.size();
  return a < b;  // 01 and 1
}

}  // namespace tenon::documents::tensorscope
