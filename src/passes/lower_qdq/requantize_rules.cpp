#include "passes/lower_qdq/parameters.h"
#include "passes/lower_qdq/rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::passes::qdq {

using namespace rewrite;

namespace {

// Quantizes a real number as quantize_linear does.
double quantized(double real, float scale, std::int64_t zero, DType dtype) {
  const auto steps = static_cast<double>(std::nearbyint(static_cast<float>(real) / scale));
  return std::clamp(steps + static_cast<double>(zero), static_cast<double>(lowest_integer(dtype)),
                    static_cast<double>(highest_integer(dtype)));
}

std::optional<double> bound(const Match& match, std::string_view name) {
  if (!match.has(name)) return std::nullopt;
  const auto number = uniform_value(match.graph(), match.value(name));
  return number ? *number : std::numeric_limits<double>::quiet_NaN();
}

// Keeps bounds in quantized steps of the result: rounding is monotonic.
ValueId requantized(const Match& match, std::optional<double> low, std::optional<double> high) {
  const Graph& graph = match.graph();
  const TensorType* sums = match.type("a");
  const auto inner = parameters_of(graph, match.node("d")),
             outer = parameters_of(graph, match.root_node());
  if (!match.root_type().is_tensor()) return {};  // the rank is only known at run time
  const DType dtype = match.root_type().tensor().dtype;
  if (!sums || sums->dtype != DType::I32 || (dtype != DType::U8 && dtype != DType::I8)) return {};
  if (!inner || !outer || !outer->is_per_tensor() ||
      inner->zero_points != std::vector<std::int64_t>{0})
    return {};
  if ((low && std::isnan(*low)) || (high && std::isnan(*high)) ||
      match.root_node().attrs.find("precision"))
    return {};
  if (!match.is_alone()) return {};
  std::vector<float> scales = inner->scales;
  for (float& scale : scales) scale /= outer->scales.front();
  if (!std::ranges::all_of(scales, [](float scale) { return scale > 0 && std::isfinite(scale); }))
    return {};
  const std::int64_t zero = outer->zero_point();
  const ValueId factor = match.make_constant(Constant(tensor_of(scales)));
  Attributes attrs;
  if (scales.size() > 1) attrs.set("axis", Dim(inner->axis));
  ValueId made = match.make(
      "requantize", {match.value("a"), factor, match.make_scalar(static_cast<double>(zero), dtype)},
      std::move(attrs));
  const double least = low ? quantized(*low, outer->scales.front(), zero, dtype) : -1e9;
  const double most = high ? quantized(*high, outer->scales.front(), zero, dtype) : 1e9;
  if (least > static_cast<double>(lowest_integer(dtype))) {
    made = match.make("maximum", {made, match.make_scalar(least, dtype)});
  }
  if (most < static_cast<double>(highest_integer(dtype))) {
    made = match.make("minimum", {made, match.make_scalar(most, dtype)});
  }
  return made;
}

// A quantized add of two 8-bit values: each is scaled once, and the zero points combine into one
// number.
ValueId requantized_sum(const Match& match, bool is_rectified) {
  const Graph& graph = match.graph();
  const TensorType *a = match.type("a"), *b = match.type("b");
  const auto left = parameters_of(graph, match.node("p")),
             right = parameters_of(graph, match.node("q")),
             outer = parameters_of(graph, match.root_node());
  if (!match.root_type().is_tensor()) return {};  // the rank is only known at run time
  const DType dtype = match.root_type().tensor().dtype;
  const auto is_byte = [](DType type) { return type == DType::U8 || type == DType::I8; };
  if (!a || !b || !is_byte(a->dtype) || !is_byte(b->dtype) || !is_byte(dtype) ||
      match.root_node().attrs.find("precision"))
    return {};
  if (!left || !right || !outer || !left->is_per_tensor() || !right->is_per_tensor() ||
      !outer->is_per_tensor())
    return {};
  if (!match.type("p") || match.type("p")->dtype != DType::F32 || a->dims != b->dims) return {};
  const float step = outer->scales.front(), by_a = left->scales.front() / step,
              by_b = right->scales.front() / step;
  if (!(step > 0 && by_a > 0 && by_b > 0 && by_a < 1e6F && by_b < 1e6F)) return {};
  const double offset = -double{by_a} * static_cast<double>(left->zero_point()) -
                        double{by_b} * static_cast<double>(right->zero_point());
  const auto scaled = [&](ValueId bytes, float factor) {
    const ValueId wide = match.make("cast", {bytes}, {{"to", DType::F32}});
    return match.make("mul", {wide, match.make_scalar(factor, DType::F32)});
  };
  ValueId sum = match.make("add", {scaled(match.value("a"), by_a), scaled(match.value("b"), by_b)});
  if (offset != 0) sum = match.make("add", {sum, match.make_scalar(offset, DType::F32)});
  sum = match.make("round", {sum});
  const auto zero = static_cast<double>(outer->zero_point());
  if (zero != 0) sum = match.make("add", {sum, match.make_scalar(zero, DType::F32)});
  const double least = is_rectified ? zero : static_cast<double>(lowest_integer(dtype));
  const ValueId low = match.make_scalar(least, DType::F32);
  const ValueId high = match.make_scalar(static_cast<double>(highest_integer(dtype)), DType::F32);
  return match.make("cast", {match.make("clip", {sum, low, high})}, {{"to", dtype}});
}

}  // namespace

std::vector<Rule> requantize_rules() {
  const std::string added =
      "add(p: dequantize_linear(a, s, z?) {..}, q: dequantize_linear(b, u, x?) {..})";
  const std::string sums = "d: dequantize_linear(a, s, z?) {..}";
  return {
      {"quantize_linear(" + sums + ", t, y?) {..}",
       [](const Match& match) { return requantized(match, std::nullopt, std::nullopt); }},
      {"quantize_linear(relu(" + sums + "), t, y?) {..}",
       [](const Match& match) { return requantized(match, 0, std::nullopt); }},
      {"quantize_linear(clip(" + sums + ", lo?, hi?), t, y?) {..}",
       [](const Match& match) {
         return requantized(match, bound(match, "lo"), bound(match, "hi"));
       }},
      {"quantize_linear(" + added + ", t, y?) {..}",
       [](const Match& match) { return requantized_sum(match, false); }},
      {"quantize_linear(relu(" + added + "), t, y?) {..}",
       [](const Match& match) { return requantized_sum(match, true); }},
  };
}

}  // namespace tenon::passes::qdq
