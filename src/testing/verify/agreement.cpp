#include "testing/verify/agreement.h"

#include "base/error.h"
#include "base/text.h"
#include "expr/analysis.h"
#include "reference/evaluate.h"
#include "testing/compare.h"
#include "testing/random.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace tenon::testing {
namespace {

// Size of random perturbations of every result, in roundings of its type.
constexpr double kDisturbedRoundings = 4;
// Allowed error relative to the effect of such perturbations: six of them need not hit the worst
// case.
constexpr double kSpreads = 16;

// Numbers up to this many denormal steps count as next to zero.
constexpr double kTinySteps = 64;

bool is_nan(std::complex<double> value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}

bool same_bits(const Tensor& a, const Tensor& b, std::int64_t k) {
  const std::size_t width = info(a.dtype()).storage_bytes;
  const std::size_t offset = static_cast<std::size_t>(k) * width;
  return std::memcmp(a.bytes().data() + offset, b.bytes().data() + offset, width) == 0;
}

std::string text_of(const Tensor& tensor, std::int64_t k) {
  if (tensor.dtype() == DType::String) return quote(tensor.strings()[static_cast<std::size_t>(k)]);
  if (is_integer(tensor.dtype())) return std::to_string(tensor.integer_at(k));
  if (tensor.dtype() == DType::Bool) return tensor.integer_at(k) != 0 ? "true" : "false";
  const std::complex<double> value = tensor.complex_at(k);
  if (!is_complex(tensor.dtype())) return format_real(value.real());
  return concat("(", format_real(value.real()), ", ", format_real(value.imag()), ")");
}

std::string differs_at(const Tensor& actual, const Tensor& expected, std::int64_t k) {
  return concat("element ", k, " is ", text_of(actual, k), " instead of ", text_of(expected, k));
}

std::string exact_tensor_difference(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() != expected.dtype() || actual.shape() != expected.shape()) {
    return concat("type ", actual.type(), " instead of ", expected.type());
  }
  if (actual.dtype() == DType::String) {
    for (std::size_t k = 0; k < expected.strings().size(); ++k) {
      if (actual.strings()[k] != expected.strings()[k]) {
        return differs_at(actual, expected, static_cast<std::int64_t>(k));
      }
    }
    return "";
  }
  if (identical(actual, expected)) return "";
  const bool has_nan = is_float(actual.dtype()) || is_complex(actual.dtype());
  for (std::int64_t k = 0; k < expected.size(); ++k) {
    if (same_bits(actual, expected, k)) continue;
    if (has_nan && is_nan(actual.complex_at(k)) && is_nan(expected.complex_at(k))) continue;
    return differs_at(actual, expected, k);
  }
  return "";
}

double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::C128:
      return 0x1p-52;
    case DType::F32:
    case DType::C64:
      return 0x1p-23;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    case DType::F8E4M3FN:
    case DType::F8E4M3FNUZ:
      return 0x1p-3;
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ:
      return 0x1p-2;
    case DType::F4E2M1:
      return 0x1p-1;
    case DType::F8E8M0:
      return 1;
    default:
      return 0;
  }
}

// Returns the largest number of operand elements that one result element depends on, estimated from
// counts.
double reduction_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  double read = 1, written = 1;
  for (ValueId operand : node.operands) {
    if (!operand || !graph.value(operand).type.is_tensor()) continue;
    const auto count = element_count(graph.value(operand).type.tensor()).value();
    if (count) read = std::max(read, static_cast<double>(*count));
  }
  for (ValueId result : node.results) {
    if (!result || !graph.value(result).type.is_tensor()) continue;
    const auto count = element_count(graph.value(result).type.tensor()).value();
    if (count) written = std::max(written, static_cast<double>(*count));
  }
  return read / written;
}

void widen(Leeway& leeway, const Graph& graph) {
  const auto see = [&](ValueId id) {
    if (!id || !graph.value(id).type.is_tensor()) return;
    leeway.epsilon = std::max(leeway.epsilon, epsilon_of(graph.value(id).type.tensor().dtype));
  };
  for (ValueId input : graph.inputs()) see(input);
  for (NodeId id : graph.nodes_in_order()) {
    for (ValueId result : graph.node(id).results) see(result);
    leeway.reduction = std::max(leeway.reduction, reduction_of(graph, id));
    for (const Graph& body : graph.node(id).bodies) widen(leeway, body);
    for (const auto& [name, value] : graph.node(id).attrs) {  // for example the type it computes in
      if (const auto* dtype = std::get_if<DType>(&value))
        leeway.epsilon = std::max(leeway.epsilon, epsilon_of(*dtype));
    }
  }
}

// Returns the smallest positive number of a type, the rounding error of numbers next to zero.
double least_step_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-1074;
    case DType::F32:
      return 0x1p-149;
    case DType::F16:
      return 0x1p-24;
    case DType::BF16:
      return 0x1p-133;
    default:
      return 0;
  }
}

// Direction of perturbations: random, all up, or all down. A zero may be an underflowed number, so
// that some runs perturb zeros too.
struct Disturbance {
  double up = 0;  // 1 or -1; 0: at random
  bool moves_zeros = false;
  bool moves_tiny_only = false;  // next to zero, where even constants may be rounded away
};
constexpr Disturbance kDisturbances[] = {{0, false}, {0, false}, {0, true},
                                         {1, true},  {-1, true}, {0, false}};

void disturb(Datum& datum, double epsilon, const Disturbance& how, Random& random) {
  if (!datum.is_tensor()) return;
  Tensor& tensor = datum.tensor();
  if (!is_float(tensor.dtype())) return;
  // A coarser type elsewhere affects this value by at least its own rounding.
  const double size = kDisturbedRoundings * std::max(epsilon, epsilon_of(tensor.dtype()));
  for (std::int64_t k = 0; k < tensor.size(); ++k) {
    const double value = tensor.real_at(k);
    if (!std::isfinite(value) || (value == 0 && !how.moves_zeros)) continue;
    const double direction = how.up != 0 ? how.up : 2 * random.real() - 1;
    const double least = least_step_of(tensor.dtype());
    if (how.moves_tiny_only) {  // scales between zero and twice the value
      if (std::abs(value) <= kTinySteps * least) tensor.set_real(k, value * (1 + direction));
    } else {
      const double step = std::round(2 * direction) * least;
      tensor.set_real(k, value + std::abs(value) * size * direction + step);
    }
  }
}

// Returns whether rounding alone may turn `expected` into `actual`, judging by the values in
// perturbed runs.
bool is_within_spread(std::complex<double> actual, std::complex<double> expected,
                      const std::vector<std::complex<double>>& disturbed) {
  double spread = 0;
  for (const std::complex<double> other : disturbed) {
    const bool is_finite = std::isfinite(std::abs(other));
    if (is_finite != std::isfinite(std::abs(expected))) return true;
    if (!is_finite && is_nan(other) != is_nan(expected)) return true;
    // The sign of a zero decides that of an infinity.
    if (!is_finite && !is_nan(other) && other != expected) return true;
    if (is_finite) spread = std::max(spread, std::abs(other - expected));
  }
  const double error = std::abs(actual - expected);
  return std::isfinite(error) && error <= kSpreads * spread;
}

// The same for element k; rounding may even change the shape.
bool is_within_spread(const Tensor& actual, const Tensor& expected, std::int64_t k,
                      const std::vector<const Tensor*>& disturbed) {
  std::vector<std::complex<double>> others;
  for (const Tensor* other : disturbed) {
    if (other->shape() != expected.shape()) return true;
    others.push_back(other->complex_at(k));
  }
  return is_within_spread(actual.complex_at(k), expected.complex_at(k), others);
}

// Parses a text as a number.
std::optional<double> number_in(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || rest != end) return std::nullopt;
  return number;
}

// Compares strings, allowing numbers to differ in digits affected by rounding.
std::string tolerant_text_difference(const Tensor& actual, const Tensor& expected,
                                     const std::function<std::vector<const Tensor*>()>& disturbed) {
  std::vector<const Tensor*> runs;
  for (std::size_t k = 0; k < expected.strings().size(); ++k) {
    if (actual.strings()[k] == expected.strings()[k]) continue;
    if (runs.empty()) runs = disturbed();
    const auto a = number_in(actual.strings()[k]), e = number_in(expected.strings()[k]);
    std::vector<std::complex<double>> others;
    for (const Tensor* run : runs) {
      if (run->shape() != expected.shape()) return "";  // rounding may even change the shape
      if (const auto other = number_in(run->strings()[k])) others.emplace_back(*other);
    }
    if (!a || !e || others.size() != runs.size() || !is_within_spread(*a, *e, others)) {
      return differs_at(actual, expected, static_cast<std::int64_t>(k));
    }
  }
  return "";
}

std::string tolerant_tensor_difference(
    const Tensor& actual, const Tensor& expected, const Leeway& leeway,
    const std::function<std::vector<const Tensor*>()>& disturbed) {
  const std::string exact = exact_tensor_difference(actual, expected);
  if (exact.empty()) return exact;
  std::vector<const Tensor*> others;
  if (actual.shape() != expected.shape() || actual.dtype() != expected.dtype()) {
    for (const Tensor* other : disturbed()) {
      if (other->dtype() == actual.dtype() && other->shape() != expected.shape()) return "";
    }
    return exact;
  }
  if (actual.dtype() == DType::String) return tolerant_text_difference(actual, expected, disturbed);
  double magnitude = 0;
  for (std::int64_t k = 0; k < expected.size(); ++k) {
    const double size = std::abs(expected.complex_at(k));
    if (std::isfinite(size)) magnitude = std::max(magnitude, size);
  }
  const bool is_rounded = is_float(actual.dtype()) || is_complex(actual.dtype());
  const double tolerance =
      is_rounded ? Leeway::roundings * leeway.epsilon * std::sqrt(leeway.reduction) * magnitude : 0;
  for (std::int64_t k = 0; k < expected.size(); ++k) {
    const std::complex<double> a = actual.complex_at(k), e = expected.complex_at(k);
    if (is_nan(a) ? is_nan(e) : a == e) continue;
    const double error = std::abs(a - e);
    if (std::isfinite(error) && error <= tolerance) continue;
    if (others.empty()) others = disturbed();
    if (!is_within_spread(actual, expected, k, others)) return differs_at(actual, expected, k);
  }
  return "";
}

std::string tolerant_difference(const Datum& actual, const Datum& expected, const Leeway& leeway,
                                const std::function<std::vector<const Datum*>()>& disturbed) {
  if (actual.kind() != expected.kind()) return exact_difference(actual, expected);
  if (actual.is_tensor()) {
    return tolerant_tensor_difference(actual.tensor(), expected.tensor(), leeway, [&] {
      std::vector<const Tensor*> tensors;
      for (const Datum* datum : disturbed()) {
        if (datum->is_tensor()) tensors.push_back(&datum->tensor());
      }
      return tensors;
    });
  }
  if (actual.items().size() != expected.items().size()) {
    for (const Datum* datum : disturbed()) {
      if (datum->kind() == expected.kind() && datum->items().size() != expected.items().size())
        return "";
    }
    return exact_difference(actual, expected);
  }
  for (std::size_t k = 0; k < expected.items().size(); ++k) {
    const std::string what =
        tolerant_difference(actual.items()[k], expected.items()[k], leeway, [&] {
          std::vector<const Datum*> items;
          for (const Datum* datum : disturbed()) {
            if (!datum->is_tensor() && k < datum->items().size())
              items.push_back(&datum->items()[k]);
          }
          return items;
        });
    if (!what.empty()) return concat("item ", k, ": ", what);
  }
  return "";
}

}  // namespace

std::string exact_difference(const Datum& actual, const Datum& expected) {
  if (actual.kind() != expected.kind()) {
    return concat("type ", actual.type(), " instead of ", expected.type());
  }
  if (actual.is_tensor()) return exact_tensor_difference(actual.tensor(), expected.tensor());
  if (actual.items().size() != expected.items().size()) {
    return concat(actual.items().size(), " items instead of ", expected.items().size());
  }
  for (std::size_t k = 0; k < expected.items().size(); ++k) {
    const std::string what = exact_difference(actual.items()[k], expected.items()[k]);
    if (!what.empty()) return concat("item ", k, ": ", what);
  }
  return "";
}

Leeway leeway_between(const Graph& before, const Graph& after) {
  Leeway leeway{false, 0, 1};
  widen(leeway, before);
  widen(leeway, after);
  return leeway;
}

namespace {

// Evaluates without roundings that an equivalent graph need not have: an overflow of a narrow type
// need not occur inside a fused kernel, and cancellation inside a node may be avoided.
std::vector<Datum> wide_outputs(const Graph& graph, std::vector<Datum> inputs,
                                reference::EvaluateOptions options) {
  if (options.node_runs_left)
    options.node_runs_left = std::make_shared<std::int64_t>(*options.node_runs_left);
  for (Datum& input : inputs) {
    if (input.is_tensor() && is_float(input.tensor().dtype()) &&
        info(input.tensor().dtype()).arithmetic == Arithmetic::F32) {
      input = Datum(input.tensor().converted(DType::F32));
    }
  }
  options.keeps_floats_wide = true;
  options.computes_wide = true;
  std::vector<Datum> outputs = reference::evaluate(graph, std::move(inputs), options);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Type& declared = graph.value(graph.outputs()[k]).type;
    if (outputs[k].is_tensor() && declared.is_tensor()) {
      outputs[k] = Datum(outputs[k].tensor().converted(declared.tensor().dtype));
    }
  }
  return outputs;
}

}  // namespace

std::vector<std::vector<Datum>> disturbed_outputs(const Graph& before,
                                                  const std::vector<Datum>& inputs, double epsilon,
                                                  const reference::EvaluateOptions& how) {
  std::vector<std::vector<Datum>> all;
  for (std::size_t n = 0; n < std::size(kDisturbances); ++n) {
    Random random(n + 1);
    std::vector<Datum> moved = inputs;
    for (Datum& input : moved) disturb(input, epsilon, {kDisturbances[n].up}, random);
    reference::EvaluateOptions options = how;
    if (how.node_runs_left)
      options.node_runs_left = std::make_shared<std::int64_t>(*how.node_runs_left);
    options.disturb = [&](Datum& datum, bool is_given) {
      Disturbance way = kDisturbances[n];
      way.moves_tiny_only = is_given;
      way.moves_zeros &= !is_given;
      disturb(datum, epsilon, way, random);
    };
    try {
      all.push_back(reference::evaluate(before, std::move(moved), options));
    } catch (const Error&) {
      // A perturbed size or index may be refused by the graph; such a run is ignored.
    }
  }
  try {
    all.push_back(wide_outputs(before, inputs, how));
  } catch (const Error&) {
    // Likewise.
  }
  return all;
}

std::optional<OutputDifference> difference_between(
    const std::vector<Datum>& actual, const std::vector<Datum>& expected, const Leeway& leeway,
    const std::function<std::vector<std::vector<Datum>>()>& disturbed) {
  std::vector<std::vector<Datum>> runs;
  bool has_run = false;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    std::string what;
    if (leeway.is_exact) {
      what = exact_difference(actual[k], expected[k]);
    } else {
      what = tolerant_difference(actual[k], expected[k], leeway, [&] {
        if (!has_run) runs = disturbed();
        has_run = true;
        std::vector<const Datum*> outputs;
        for (const std::vector<Datum>& run : runs) outputs.push_back(&run[k]);
        return outputs;
      });
    }
    if (!what.empty()) return OutputDifference{k, std::move(what)};
  }
  return std::nullopt;
}

}  // namespace tenon::testing
