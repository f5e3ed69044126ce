#include "base/error.h"
#include "base/text.h"
#include "passes/compat/relay/fixed_point.h"
#include "passes/compat/relay/forward_rewrite.h"
#include "passes/compat/relay/stages.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::passes::relay_quantize {
namespace {

using Results = std::optional<std::vector<Rewritten>>;

// Note on a temporary: its value is in steps, and stands for steps · scale. Just after a quantizer
// the steps still have type f32.
struct Steps {
  float scale = 1;
  DType dtype = DType::F32;
};

bool is_whole(float number) { return std::trunc(number) == number; }

class Realizer {
 public:
  Realizer(const Graph& graph, const Config& config) : graph_(graph), config_(config) {
    const auto rule = [this](auto member) {
      return [this, member](ForwardRewriter& rewriter, const RewrittenNode& node) -> Results {
        rewriter_ = &rewriter;
        return (this->*member)(node);
      };
    };
    rules_.by_op = {{"simulated_quantize", rule(&Realizer::quantize)},
                    {"conv", rule(&Realizer::product)},
                    {"matmul", rule(&Realizer::product)},
                    {"mul", rule(&Realizer::multiply)},
                    {"add", rule(&Realizer::add)},
                    {"concat", rule(&Realizer::concat_parts)},
                    {"clip", rule(&Realizer::clip)},
                    {"max_pool", rule(&Realizer::max_pool)},
                    {"average_pool", rule(&Realizer::average_pool)},
                    {"cast_hint", rule(&Realizer::cast_hint)}};
    for (const char* op : {"relu", "reshape", "slice", "transpose", "squeeze", "unsqueeze",
                           "identity", "stop_fusion"})
      rules_.by_op[op] = rule(&Realizer::keep);
    // Converts back to floats.
    rules_.realize = [this](ForwardRewriter& rewriter, const Temporary& held) {
      rewriter_ = &rewriter;
      const Steps& steps = std::any_cast<const Steps&>(held.note);
      const ValueId real = steps.dtype == DType::F32 ? held.value : cast(held.value, DType::F32);
      return rewriter.call("mul", {real, scalar(DType::F32, steps.scale)}, {},
                           name_of_value(held.value) + "_real");
    };
  }

  Graph run() { return ForwardRewriter(graph_, rules_).run(); }

 private:
  std::string name_of_value(ValueId value) const { return rewriter_->graph().value(value).name; }
  ValueId scalar(DType dtype, double value) {
    return rewriter_->constant(Constant(Tensor::scalar(dtype, value)));
  }
  ValueId wide_scalar(std::int64_t value) {
    return rewriter_->constant(
        Constant(Tensor::of(DType::I64, {}, std::vector<std::int64_t>{value})));
  }
  ValueId call(std::string_view op, const std::vector<ValueId>& operands, Attributes attrs = {}) {
    return rewriter_->call(op, operands, std::move(attrs));
  }
  ValueId cast(ValueId value, DType to) { return call("cast", {value}, {{"to", to}}); }

  const Steps& steps_of(const Rewritten& item) const {
    return std::any_cast<const Steps&>(rewriter_->temporary(item.temporary).note);
  }
  Results steps(ValueId value, float scale, DType dtype) {
    return std::vector<Rewritten>{rewriter_->make_temporary(value, Steps{scale, dtype})};
  }
  DType sums() const { return config_.dtype_activation; }

  // Truncates the bounds of integers.
  ValueId held(ValueId value, DType dtype, double low, double high) {
    if (dtype != DType::F32) {
      low = std::clamp(std::trunc(low), static_cast<double>(lowest_integer(dtype)),
                       static_cast<double>(highest_integer(dtype)));
      high = std::clamp(std::trunc(high), static_cast<double>(lowest_integer(dtype)),
                        static_cast<double>(highest_integer(dtype)));
    }
    return call("clip", {value, scalar(dtype, low), scalar(dtype, high)});
  }

  // Fixed-point multiplication of a 64-bit x. With TONEAREST, the addend before the shift depends
  // on the sign of the product.
  ValueId times_fraction(ValueId x, double factor) {
    const FixedPoint number = fixed_point_of(factor);
    const bool is_to_nearest = config_.rounding == "TONEAREST";
    if (!is_to_nearest) {
      return call("fixed_point_multiply", {x},
                  {{"multiplier", Dim(number.multiplier)}, {"shift", Dim(number.shift)}});
    }
    const std::int64_t left = std::max<std::int64_t>(number.shift, 0),
                       right = std::max<std::int64_t>(-number.shift, 0) + 31;
    if (left > 0) x = call("shift_left", {x, wide_scalar(left)});
    const ValueId product = call("mul", {x, wide_scalar(number.multiplier)});
    const std::int64_t half = std::int64_t{1} << (right - 1);
    const ValueId is_positive = call("greater_equal", {product, wide_scalar(0)});
    const ValueId addend = call("where", {is_positive, wide_scalar(half), wide_scalar(half - 1)});
    return call("shift_right", {call("add", {product, addend}), wide_scalar(right)});
  }

  ValueId rounded(ValueId x) {
    if (config_.ties == "even") return call("round", {x});
    // Only exact halves round differently; the difference to the integer part is exact.
    const ValueId whole = call("trunc", {x});
    const ValueId part = call("abs", {call("sub", {x, whole})});
    const ValueId is_half = call("equal", {part, scalar(DType::F32, 0.5)});
    const ValueId outward = call("add", {whole, call("sign", {x})});
    return call("where", {is_half, outward, call("round", {x})});
  }

  double number_of(const RewrittenNode& node, std::size_t position) const {
    const Constant* constant = node.graph.constant_of(node.graph.node(node.id).operands[position]);
    if (constant == nullptr) {
      throw Error("quantize: a quantizer's numbers are not known", ErrorKind::Usage)
          .at(node.graph.location(node.id))
          .hint("calibrate first");
    }
    return constant->materialise().real_at(0);
  }

  Results quantize(const RewrittenNode& node) {
    if (kind_of(node.graph, node.id) == QuantizerKind::Identity) return std::nullopt;
    const auto to = static_cast<float>(number_of(node, 1));
    const double low = number_of(node, 2), high = number_of(node, 3);
    const Rewritten& x = node.operands[0];
    if (!x.is_temporary()) {
      const ValueId scaled = call("mul", {x.value, scalar(DType::F32, 1 / to)});
      return steps(held(rounded(scaled), DType::F32, low, high), to, DType::F32);
    }
    auto [from, dtype] = steps_of(x);
    ValueId value = x.value;
    if (from == to) return steps(held(value, dtype, low, high), to, dtype);
    const float places = std::log2(to / from);
    if (is_whole(places)) {
      // Shifts apply to accumulators. Bytes to be quantized again are widened first.
      if (dtype != sums()) value = cast(value, sums());
      if (places > 0 && config_.round_for_shift)
        value = call("add", {value, scalar(sums(), std::exp2(places - 1))});
      value = call(places > 0 ? "shift_right" : "shift_left",
                   {value, scalar(sums(), std::abs(places))});
      return steps(held(value, sums(), low, high), to, sums());
    }
    const ValueId wide = times_fraction(cast(value, DType::I64), from / to);
    return steps(cast(held(wide, DType::I64, low, high), dtype), to, dtype);
  }

  // Requires that accumulators fit 32 bits for any operands.
  void require_room(const RewrittenNode& node) const {
    const Node& product = node.graph.node(node.id);
    const TensorType& w = node.graph.value(product.operands[1]).type.tensor();
    std::int64_t terms = 1;
    if (product.op->name == "conv") {
      const std::size_t outputs = w.layout.axis('O').value_or(0);
      for (std::size_t k = 0; k < w.rank(); ++k)
        terms *= k == outputs ? 1 : w.dims[k].is_constant() ? w.dims[k].constant() : 1;
    } else {
      const Dim& sum = w.dims[w.rank() - 2];
      terms = sum.is_constant() ? sum.constant() : 1;
    }
    // A byte that wrapped around can be the lowest of its type.
    const double largest = std::exp2(config_.nbit_input - 1) - (config_.legacy_add ? 0 : 1);
    const double most = largest * (std::exp2(config_.nbit_weight - 1) - 1);
    const double limit = static_cast<double>(std::numeric_limits<std::int32_t>::max());
    if (static_cast<double>(terms) * most <= limit) return;
    throw Error("quantize: a sum of products could leave 32 bits", ErrorKind::Unsupported)
        .at(node.graph.location(node.id))
        .expected("at most ", static_cast<std::int64_t>(limit / most), " products")
        .got(terms)
        .hint("--set skip_conv_layers=... leaves a convolution as floats");
  }

  Results product(const RewrittenNode& node) {
    const Rewritten &x = node.operands[0], &w = node.operands[1];
    if (!x.is_temporary() || !w.is_temporary()) return std::nullopt;
    require_room(node);
    const Steps left = steps_of(x), right = steps_of(w);
    const bool is_between_values = node.graph.op_name(node.id) == "matmul";
    const ValueId a =
        left.dtype == config_.dtype_input ? x.value : cast(x.value, config_.dtype_input);
    const bool is_right_narrow = is_between_values && right.dtype == config_.dtype_weight;
    const ValueId b = is_right_narrow ? w.value : cast(w.value, config_.dtype_weight);
    Attributes attrs = node.graph.node(node.id).attrs;
    attrs.set("out_dtype", sums());
    const ValueId result = node.graph.node(node.id).results.front();
    const ValueId sum = rewriter_->call(node.graph.op_name(node.id), {a, b}, std::move(attrs),
                                        node.graph.value(result).name);
    rewriter_->graph().mutable_node(rewriter_->graph().value(sum).producer).name =
        node.graph.node(node.id).name;
    return steps(sum, left.scale * right.scale, sums());
  }

  Results multiply(const RewrittenNode& node) {
    if (!node.operands[0].is_temporary() || !node.operands[1].is_temporary()) return std::nullopt;
    const Steps left = steps_of(node.operands[0]), right = steps_of(node.operands[1]);
    const auto widened = [&](const Rewritten& item, const Steps& of) {
      return of.dtype == sums() ? item.value : cast(item.value, sums());
    };
    const ValueId a = widened(node.operands[0], left), b = widened(node.operands[1], right);
    return steps(rewriter_->forward(node.id, {a, b}).front(), left.scale * right.scale, sums());
  }

  // Rescales to a finer scale with more steps.
  ValueId rescaled(ValueId value, float from, float to, DType dtype) {
    if (from == to) return value;
    const float factor = from / to, places = std::log2(factor);
    if (is_whole(places)) return call("shift_left", {value, scalar(dtype, places)});
    if (is_whole(factor)) return call("mul", {value, scalar(dtype, factor)});
    return cast(times_fraction(cast(value, DType::I64), factor), dtype);
  }

  // Converts operands to one type and scale. Quantized values of the accumulator type are stored in
  // 8 bits.
  std::vector<ValueId> unified(const RewrittenNode& node, DType dtype, float scale) {
    std::vector<ValueId> values;
    for (std::size_t k = 0; k < node.operands.size(); ++k) {
      const Rewritten& item = node.operands[k];
      const Steps& of = steps_of(item);
      ValueId value = item.value;
      if (of.dtype != dtype) {
        value = cast(value, dtype);
      } else if (reads_input_quantizer(node, k)) {
        value = cast(call("stop_fusion", {cast(value, config_.dtype_input)}), dtype);
      }
      values.push_back(rescaled(value, of.scale, scale, dtype));
    }
    return values;
  }
  static bool reads_input_quantizer(const RewrittenNode& node, std::size_t position) {
    const NodeId maker = node.graph.value(node.graph.node(node.id).operands[position]).producer;
    return maker && node.graph.op_name(maker) == "simulated_quantize" &&
           kind_of(node.graph, maker) == QuantizerKind::Input;
  }

  float finest(const RewrittenNode& node) const {
    float scale = std::numeric_limits<float>::infinity();
    for (const Rewritten& item : node.operands) scale = std::min(scale, steps_of(item).scale);
    return scale;
  }

  // Returns whether the operands are quantized; throws if only some are.
  bool are_steps(const RewrittenNode& node) const {
    const auto count = std::ranges::count_if(
        node.operands, [](const Rewritten& item) { return item.is_temporary(); });
    if (count == 0) return false;
    if (count == static_cast<std::ptrdiff_t>(node.operands.size())) return true;
    throw Error("quantize: some operands are quantized and others are not", ErrorKind::Unsupported)
        .at(node.graph.location(node.id))
        .expected("all of them or none")
        .hint("--set debug_enabled_ops=... may leave the op out");
  }

  Results add(const RewrittenNode& node) {
    if (!are_steps(node)) return std::nullopt;
    const float scale = finest(node);
    std::vector<ValueId> values = unified(node, sums(), scale);
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (steps_of(node.operands[k]).dtype == DType::F32)
        values[k] = call("stop_fusion", {values[k]});
    }
    return steps(rewriter_->forward(node.id, values).front(), scale, sums());
  }

  Results concat_parts(const RewrittenNode& node) {
    if (!are_steps(node)) return std::nullopt;
    const bool is_pair = node.operands.size() == 2;
    const bool is_narrow = is_pair && steps_of(node.operands[1]).dtype == config_.dtype_input;
    const DType dtype = is_narrow ? config_.dtype_input : sums();
    // For more than two operands the common scale is the finest one of accumulators.
    const float scale =
        is_pair ? finest(node)
                : config_.global_scale / std::exp2(static_cast<float>(config_.nbit_activation - 1));
    return steps(rewriter_->forward(node.id, unified(node, dtype, scale)).front(), scale, dtype);
  }

  Results clip(const RewrittenNode& node) {
    const Rewritten& x = node.operands[0];
    if (!x.is_temporary()) return std::nullopt;
    const Steps of = steps_of(x);
    const auto bound = [&](std::size_t position, double otherwise) {
      const bool is_given = position < node.operands.size() && node.operands[position].value;
      return is_given ? number_of(node, position) / double{of.scale} : otherwise;
    };
    constexpr double kFar = std::numeric_limits<double>::infinity();
    return steps(held(x.value, of.dtype, bound(1, -kFar), bound(2, kFar)), of.scale, of.dtype);
  }

  Results keep(const RewrittenNode& node) {
    if (!node.operands[0].is_temporary()) return std::nullopt;
    return forwarded(node, node.operands[0].value, steps_of(node.operands[0]).dtype);
  }
  Results forwarded(const RewrittenNode& node, ValueId x, DType dtype) {
    std::vector<ValueId> values{x};
    for (std::size_t k = 1; k < node.operands.size(); ++k) values.push_back(node.operands[k].value);
    const float scale = steps_of(node.operands[0]).scale;
    std::vector<Rewritten> results;
    for (const ValueId value : rewriter_->forward(node.id, values))
      results.push_back(value ? rewriter_->make_temporary(value, Steps{scale, dtype})
                              : Rewritten{});
    return results;
  }
  Results in_type(const RewrittenNode& node, DType dtype) {
    const Rewritten& x = node.operands[0];
    if (!x.is_temporary()) return std::nullopt;
    const ValueId value = steps_of(x).dtype == dtype ? x.value : cast(x.value, dtype);
    return forwarded(node, value, dtype);
  }
  Results max_pool(const RewrittenNode& node) { return in_type(node, config_.dtype_input); }
  Results average_pool(const RewrittenNode& node) { return in_type(node, sums()); }

  Results cast_hint(const RewrittenNode& node) {
    const Rewritten& x = node.operands[0];
    if (!x.is_temporary()) return std::nullopt;
    const DType to = std::get<DType>(*node.graph.node(node.id).attrs.find("dtype"));
    return steps(cast(x.value, to), steps_of(x).scale, to);
  }

  const Graph& graph_;
  const Config& config_;
  ForwardRules rules_;
  ForwardRewriter* rewriter_ = nullptr;  // set while a rule runs
};

}  // namespace

Graph realize(const Graph& graph, const Config& config) { return Realizer(graph, config).run(); }

}  // namespace tenon::passes::relay_quantize
