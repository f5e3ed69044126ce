#include "base/error.h"
#include "base/text.h"
#include "ops/definition/evaluation.h"
#include "ops/definition/op_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace tenon::inline ops::cast_text_op {
namespace {

struct Attrs {
  DType to = DType::String;
};

TensorType infer(const Attrs& attrs, const OperandTypes& in) {
  TensorType type = in["x"];
  if (type.dtype != DType::String && attrs.to != DType::String) {
    throw Error("cast_text: neither side is a string")
        .got(type, " to ", attrs.to)
        .hint("cast converts between numbers");
  }
  type.dtype = attrs.to;
  return type;
}

// Prints the fewest digits that read back as the same element.
std::string shortest_text(const Tensor& x, std::int64_t index) {
  const double value = x.real_at(index);
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "INF" : "-INF";
  char buffer[64];
  Tensor back(x.dtype(), {1});
  for (int digits = 1; digits <= std::numeric_limits<double>::max_digits10; ++digits) {
    const char* end = std::to_chars(std::begin(buffer), std::end(buffer), value,
                                    std::chars_format::general, digits)
                          .ptr;
    const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
    double read = 0;
    std::from_chars(text.data(), text.data() + text.size(), read);
    back.set_real(0, read);
    if (back.real_at(0) == value) return std::string(text);
  }
  return std::to_string(value);
}

std::string element_text(const Tensor& x, std::int64_t index) {
  const DType dtype = x.dtype();
  if (dtype == DType::String) return x.strings()[static_cast<std::size_t>(index)];
  if (dtype == DType::Bool) return x.integer_at(index) != 0 ? "True" : "False";
  if (dtype == DType::U64) return std::to_string(static_cast<std::uint64_t>(x.integer_at(index)));
  if (is_integer(dtype)) return std::to_string(x.integer_at(index));
  return shortest_text(x, index);
}

[[noreturn]] void refuse(const std::string& text, DType to) {
  throw Error("cast_text: a string holds no number")
      .expected("decimal or scientific notation, INF or NaN")
      .got("\"", text, "\" for ", to);
}

template <class T>
bool read_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void store_number(Tensor& y, std::int64_t index, const std::string& text) {
  const auto is_space = [](unsigned char letter) { return std::isspace(letter) != 0; };
  const auto first = std::ranges::find_if_not(text, is_space);
  std::string word(
      first, std::find_if_not(text.rbegin(), std::make_reverse_iterator(first), is_space).base());
  std::ranges::transform(word, word.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  if (word.starts_with('+')) word.erase(0, 1);
  if (y.dtype() == DType::Bool && (word == "true" || word == "false")) {
    return y.set_integer(index, word == "true");
  }
  std::int64_t whole = 0;
  std::uint64_t large = 0;
  if (is_integer(y.dtype()) && read_whole(word, whole)) return y.set_integer(index, whole);
  if (y.dtype() == DType::U64 && read_whole(word, large)) {
    return y.set_integer(index, static_cast<std::int64_t>(large));
  }
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0') refuse(text, y.dtype());
  if (is_integer(y.dtype())) return y.set_integer(index, static_cast<std::int64_t>(value));
  if (y.dtype() == DType::Bool) return y.set_integer(index, value != 0);
  y.set_real(index, value);
}

void evaluate(const Attrs& attrs, Evaluation& op) {
  const Tensor& x = op.tensor("x");
  Tensor y(attrs.to, x.shape());
  for (std::int64_t k = 0; k < x.size(); ++k) {
    const std::string text = element_text(x, k);
    if (attrs.to == DType::String) {
      y.mutable_strings()[static_cast<std::size_t>(k)] = text;
    } else {
      store_number(y, k, text);
    }
  }
  op.set("y", std::move(y));
}

}  // namespace

TENON_DEFINE_OP(cast_text) = OpSpec<Attrs>{
    .name = "cast_text",
    .summary = "numbers written as strings, or read from them",
    .operands = {"x"},
    .results = {"y"},
    .attrs = {{"to", &Attrs::to, required}},
    .infer = infer,
    .evaluate = evaluate,
    .gradient = not_differentiable("strings do not vary smoothly"),
    .layout = any_layout(),
    .examples = {"x: F a", "x: string a; to = string"},
};

}  // namespace tenon::inline ops::cast_text_op
