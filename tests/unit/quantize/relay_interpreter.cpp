#include "unit/quantize/relay_interpreter.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tenon {
namespace {

std::vector<std::int64_t> numbers(const Node& node, const char* name) {
  std::vector<std::int64_t> list;
  for (const Dim& dim : std::get<Dims>(*node.attrs.find(name))) list.push_back(dim.constant());
  return list;
}

std::size_t count_of(const Shape& shape) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

// A window over an NHWC image.
struct Window {
  std::int64_t in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, top, left;
  Window(const Node& node, const Shape& in, std::int64_t kh, std::int64_t kw)
      : in_h(in[1]), in_w(in[2]), kernel_h(kh), kernel_w(kw) {
    const auto strides = numbers(node, "strides"), pads = numbers(node, "pads");
    stride_h = strides[0], stride_w = strides[1];
    top = pads[0], left = pads[1];
    out_h = (in_h + pads[0] + pads[2] - kh) / stride_h + 1;
    out_w = (in_w + pads[1] + pads[3] - kw) / stride_w + 1;
  }
  // Calls f(window position, pixel) for every position inside the image.
  template <class F>
  void each(std::int64_t y, std::int64_t x, F f) const {
    for (std::int64_t ky = 0; ky < kernel_h; ++ky) {
      for (std::int64_t kx = 0; kx < kernel_w; ++kx) {
        const std::int64_t iy = y * stride_h + ky - top, ix = x * stride_w + kx - left;
        if (iy < 0 || ix < 0 || iy >= in_h || ix >= in_w) continue;
        f(static_cast<std::size_t>(ky * kernel_w + kx), static_cast<std::size_t>(iy * in_w + ix));
      }
    }
  }
};

// Convolves one image of a batch; weights are HWIO.
template <class Number, class Sum>
std::vector<Sum> convolution(const Window& window, const std::vector<Number>& image,
                             const std::vector<Number>& weights, std::size_t batch, std::size_t in,
                             std::size_t out) {
  std::vector<Sum> result;
  std::vector<Sum> sums(out);
  const std::size_t pixels = static_cast<std::size_t>(window.in_h * window.in_w);
  for (std::size_t n = 0; n < batch; ++n) {
    for (std::int64_t y = 0; y < window.out_h; ++y) {
      for (std::int64_t x = 0; x < window.out_w; ++x) {
        std::fill(sums.begin(), sums.end(), Sum{0});
        window.each(y, x, [&](std::size_t place, std::size_t pixel) {
          const Number* from = &image[(n * pixels + pixel) * in];
          const Number* w = &weights[place * in * out];
          for (std::size_t c = 0; c < in; ++c)
            for (std::size_t o = 0; o < out; ++o)
              sums[o] += static_cast<Sum>(from[c]) * static_cast<Sum>(w[c * out + o]);
        });
        result.insert(result.end(), sums.begin(), sums.end());
      }
    }
  }
  return result;
}

}  // namespace

std::int64_t RelayInterpreter::multiplied(std::int64_t x, double factor, bool rounds_to_nearest) {
  int exponent = 0;
  const double mantissa = std::frexp(factor, &exponent);
  auto multiplier = static_cast<std::int64_t>(std::round(std::ldexp(mantissa, 31)));
  if (multiplier == std::int64_t{1} << 31) {
    multiplier /= 2;
    ++exponent;
  }
  const int left = std::max(exponent, 0), total = std::max(-exponent, 0) + 31;
  const __int128 product = (static_cast<__int128>(x) << left) * multiplier;
  __int128 addend = static_cast<__int128>(1) << (total - 1);
  if (rounds_to_nearest && product < 0) --addend;
  return static_cast<std::int32_t>((product + addend) >> total);
}

std::vector<float> RelayInterpreter::run(const std::vector<float>& input) {
  values_.clear();
  convolutions_ = 0;
  Held given;
  const ValueId id = graph_.inputs().front();
  for (const Dim& dim : graph_.value(id).type.tensor().dims) given.shape.push_back(dim.constant());
  given.reals = input;
  values_[id] = given;
  const ValueId output = graph_.outputs().front();
  Held result = value(output);
  if (result.is_open) result = closed(result);
  return as_reals(result).reals;
}

const std::vector<std::int64_t>& RelayInterpreter::steps(const std::string& name) const {
  static const std::vector<std::int64_t> none;
  const auto found = values_.find(graph_.find(name));
  return found == values_.end() ? none : found->second.steps;
}

const RelayInterpreter::Held& RelayInterpreter::value(ValueId id) {
  const auto known = values_.find(id);
  if (known != values_.end()) return known->second;
  const Node& node = graph_.node(graph_.value(id).producer);
  if (node.op->name == "constant") return values_[id] = constant(id);
  for (const ValueId operand : node.operands) value(operand);  // left to right
  return values_[id] = computed(node);
}

// Each reader with a rule closes its own section; all others, and an output, share one.
std::size_t RelayInterpreter::references(ValueId id) const {
  std::size_t count = 0;
  bool is_shared = graph_.is_output(id);
  for (const NodeId reader : graph_.readers(id)) {
    const std::string& op = graph_.node(reader).op->name;
    const bool has_rule = op == "conv" || op == "add" || op == "relu" || op == "max_pool";
    if (has_rule || !values_.at(id).is_open) {
      ++count;
    } else {
      is_shared = true;
    }
  }
  return count + (is_shared ? 1 : 0);
}

// Returns a reader's view of the value: a quantized value with several readers has 8 bits.
RelayInterpreter::Held RelayInterpreter::operand(const Node& node, std::size_t position) {
  const ValueId id = node.operands[position];
  const Held& held = values_.at(id);
  return held.kind != Kind::None && references(id) > 1 ? as_input(held) : held;
}

RelayInterpreter::Held RelayInterpreter::computed(const Node& node) {
  const std::string& op = node.op->name;
  if (op == "conv") return convolved(node);
  if (op == "add") return added(node);
  if (op == "max_pool") return pooled(node);
  if (op == "reduce_mean") return averaged(node);
  Held x = operand(node, 0);
  if (op == "relu") {
    for (float& element : x.reals) element = std::max(element, 0.0F);
    for (std::int64_t& step : x.steps) step = std::max<std::int64_t>(step, 0);
    return x;
  }
  if (op == "pad") {  // padding of channels only
    const auto pads = numbers(node, "pads");
    const auto added_channels = static_cast<std::size_t>(pads.back());
    const auto channels = static_cast<std::size_t>(x.shape.back());
    Held wide;
    wide.shape = x.shape;
    wide.shape.back() += pads.back();
    for (std::size_t at = 0; at < x.reals.size(); at += channels) {
      wide.reals.insert(wide.reals.end(), x.reals.begin() + static_cast<std::ptrdiff_t>(at),
                        x.reals.begin() + static_cast<std::ptrdiff_t>(at + channels));
      wide.reals.insert(wide.reals.end(), added_channels, 0.0F);
    }
    return wide;
  }
  throw std::runtime_error("the interpreter does not know " + op);
}

RelayInterpreter::Held RelayInterpreter::constant(ValueId id) const {
  const Tensor tensor = graph_.constant_of(id)->materialise();
  Held held;
  held.shape = tensor.shape();
  held.reals.assign(tensor.as<float>().begin(), tensor.as<float>().end());
  return held;
}

// Clips to ±127 of `scale`: by a shift if the scales differ by a power of two.
RelayInterpreter::Held RelayInterpreter::quantized(Held x, float scale) const {
  const auto clipped = [](std::int64_t step) { return std::clamp<std::int64_t>(step, -127, 127); };
  if (x.stored == Stored::Real) {
    const float reciprocal = 1 / scale;
    for (const float element : x.reals) {
      const float rounded = std::nearbyint(element * reciprocal);
      x.steps.push_back(static_cast<std::int64_t>(std::clamp(rounded, -127.0F, 127.0F)));
    }
    x.reals.clear();
    x.stored = Stored::RealSteps;
  } else if (x.scale != scale) {
    const float places = std::log2(scale / x.scale);
    const bool is_shift = places == std::floor(places);
    const auto shift = static_cast<int>(std::abs(places));
    for (std::int64_t& step : x.steps) {
      if (!is_shift) {
        step = multiplied(step, double{x.scale / scale}, options_.rounds_to_nearest);
      } else if (places > 0) {
        step = (step + (std::int64_t{1} << (shift - 1))) >> shift;
      } else {
        step = static_cast<std::int32_t>(static_cast<std::uint32_t>(step) << shift);
      }
    }
    if (is_shift) x.stored = Stored::Sum;
  }
  for (std::int64_t& step : x.steps) step = clipped(step);
  x.scale = scale;
  return x;
}

RelayInterpreter::Held RelayInterpreter::quantized_weight(Held x) const {
  float largest = 0;
  for (const float element : x.reals) largest = std::max(largest, std::abs(element));
  float scale = 1;
  if (largest > 0)
    scale = options_.takes_largest_weight ? largest : std::exp2(std::ceil(std::log2(largest)));
  return quantized(std::move(x), scale / 128);
}

RelayInterpreter::Held RelayInterpreter::as_input(Held x) const {
  x = quantized(std::move(x), options_.global_scale / 128);
  x.kind = Kind::Input;
  return x;
}

RelayInterpreter::Held RelayInterpreter::as_bytes(Held x) const {
  for (std::int64_t& step : x.steps) step = static_cast<std::int8_t>(step);
  x.stored = Stored::Byte;
  return x;
}

// Applies an 8-bit hint; on a value that is not quantized it is dropped.
RelayInterpreter::Held RelayInterpreter::closed(Held x) const {
  x.is_open = false;
  if (x.kind == Kind::None) return x;
  if (x.kind == Kind::Activation) x = as_input(std::move(x));
  return as_bytes(std::move(x));
}

RelayInterpreter::Held RelayInterpreter::as_reals(Held x) const {
  if (x.stored == Stored::Real) return x;
  for (const std::int64_t step : x.steps) x.reals.push_back(static_cast<float>(step) * x.scale);
  x.steps.clear();
  x.stored = Stored::Real;
  x.kind = Kind::None;
  return x;
}

RelayInterpreter::Held RelayInterpreter::convolved(const Node& node) {
  Held x = operand(node, 0);
  if (x.is_open) x = closed(std::move(x));
  Held w = values_.at(node.operands[1]);
  const std::int64_t number = convolutions_++;
  const bool is_skipped = std::ranges::find(options_.skipped, number) != options_.skipped.end();
  Held y;
  y.is_open = true;
  const Window window(node, x.shape, w.shape[0], w.shape[1]);
  const auto batch = static_cast<std::size_t>(x.shape[0]),
             in = static_cast<std::size_t>(w.shape[2]), out = static_cast<std::size_t>(w.shape[3]);
  y.shape = {x.shape[0], window.out_h, window.out_w, w.shape[3]};
  if (is_skipped) {
    x = as_reals(std::move(x));
    y.reals = convolution<float, float>(window, x.reals, w.reals, batch, in, out);
    return y;
  }
  if (x.kind != Kind::Input) x = as_input(std::move(x));
  x = as_bytes(std::move(x));
  w = quantized_weight(std::move(w));
  const std::vector<std::int32_t> bytes(x.steps.begin(), x.steps.end()),
      weights(w.steps.begin(), w.steps.end());
  const auto sums = convolution<std::int32_t, std::int32_t>(window, bytes, weights, batch, in, out);
  y.steps.assign(sums.begin(), sums.end());
  y.scale = x.scale * w.scale;
  y.stored = Stored::Sum;
  y.kind = Kind::Activation;
  return y;
}

void RelayInterpreter::to_scale(Held& x, float scale) const {
  const float factor = x.scale / scale, places = std::log2(factor);
  for (std::int64_t& step : x.steps) {
    if (factor == 1) break;
    if (places == std::floor(places)) {
      step =
          static_cast<std::int32_t>(static_cast<std::uint32_t>(step) << static_cast<int>(places));
    } else if (factor == std::floor(factor)) {
      step *= static_cast<std::int64_t>(factor);
    } else {
      step = multiplied(step, double{factor}, options_.rounds_to_nearest);
    }
  }
  x.scale = scale;
  x.stored = Stored::Sum;
}

RelayInterpreter::Held RelayInterpreter::added(const Node& node) {
  Held left = operand(node, 0), right = operand(node, 1);
  const bool is_bias = graph_.constant_of(node.operands[1]) != nullptr;
  const bool are_both_open = left.is_open && right.is_open;
  const bool stays_open = are_both_open || (left.is_open && is_bias);
  if (left.is_open && !is_bias) left = closed(std::move(left));
  if (right.is_open) right = closed(std::move(right));
  if (left.kind == Kind::None && right.kind == Kind::None) {
    for (std::size_t k = 0; k < left.reals.size(); ++k)
      left.reals[k] += right.reals[k % right.reals.size()];
    left.is_open = stays_open;
    return left;
  }
  const Kind of_inputs = options_.has_legacy_add ? Kind::Input : Kind::Activation;
  Kind kind = Kind::Activation;
  if (left.kind == Kind::None) {
    left = as_input(std::move(left));
    kind = of_inputs;
  } else if (right.kind == Kind::None) {
    right = is_bias ? quantized_weight(std::move(right)) : as_input(std::move(right));
  } else if (left.kind == Kind::Input && right.kind == Kind::Input) {
    kind = of_inputs;
  } else if (left.kind == Kind::Activation && right.kind == Kind::Activation) {
    right = as_input(std::move(right));
  }
  const float scale = std::min(left.scale, right.scale);
  to_scale(left, scale);
  to_scale(right, scale);
  for (std::size_t k = 0; k < left.steps.size(); ++k)
    left.steps[k] += right.steps[k % right.steps.size()];
  left.kind = kind;
  left.is_open = stays_open;
  return left;
}

RelayInterpreter::Held RelayInterpreter::pooled(const Node& node) {
  Held x = operand(node, 0);
  if (x.kind == Kind::Activation) x = as_input(std::move(x));
  if (x.kind == Kind::Input) x = as_bytes(std::move(x));
  const auto kernel = numbers(node, "kernel_shape");
  const Window window(node, x.shape, kernel[0], kernel[1]);
  const auto channels = static_cast<std::size_t>(x.shape[3]);
  const std::size_t pixels = static_cast<std::size_t>(window.in_h * window.in_w);
  const auto largest = [&](const auto& from) {
    auto result = from;
    result.clear();
    for (std::size_t n = 0; n < static_cast<std::size_t>(x.shape[0]); ++n)
      for (std::int64_t oy = 0; oy < window.out_h; ++oy)
        for (std::int64_t ox = 0; ox < window.out_w; ++ox)
          for (std::size_t c = 0; c < channels; ++c) {
            bool is_first = true;
            auto most = from.front();
            window.each(oy, ox, [&](std::size_t, std::size_t pixel) {
              const auto element = from[(n * pixels + pixel) * channels + c];
              most = is_first ? element : std::max(most, element);
              is_first = false;
            });
            result.push_back(most);
          }
    return result;
  };
  if (!x.reals.empty()) x.reals = largest(x.reals);
  if (!x.steps.empty()) x.steps = largest(x.steps);
  x.shape[1] = window.out_h;
  x.shape[2] = window.out_w;
  return x;
}

// Averages over both image axes, in floats.
RelayInterpreter::Held RelayInterpreter::averaged(const Node& node) const {
  Held x = values_.at(node.operands[0]);
  if (x.is_open) x = closed(std::move(x));
  x = as_reals(std::move(x));
  const auto batch = static_cast<std::size_t>(x.shape[0]),
             channels = static_cast<std::size_t>(x.shape[3]);
  const std::size_t pixels = count_of(x.shape) / batch / channels;
  std::vector<float> means;
  for (std::size_t n = 0; n < batch; ++n)
    for (std::size_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (std::size_t p = 0; p < pixels; ++p)
        sum += double{x.reals[(n * pixels + p) * channels + c]};
      means.push_back(static_cast<float>(sum / static_cast<double>(pixels)));
    }
  x.reals = std::move(means);
  x.shape = {x.shape[0], 1, 1, x.shape[3]};
  return x;
}

}  // namespace tenon
