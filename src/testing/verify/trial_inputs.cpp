#include "testing/verify/trial_inputs.h"

#include "testing/random.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::testing {
namespace {

// Returns the smallest positive number of an element type, or one near it.
double denormal_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
    case DType::C128:
      return std::numeric_limits<double>::denorm_min();
    case DType::F32:
    case DType::C64:
      return std::numeric_limits<float>::denorm_min();
    case DType::F16:
      return 0x1p-24;
    case DType::BF16:
      return 0x1p-133;
    default:
      return 0x1p-9;
  }
}

double ordinary_real(Random& random) {  // the sum of four is nearly normal
  return (random.real() + random.real() + random.real() + random.real() - 2) * 1.75;
}

double quiet_real(DType dtype, Random& random) {
  switch (random.below(8)) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return denormal_of(dtype);
    case 3:
      return -denormal_of(dtype);
    case 4:
      return 1;
    case 5:
      return -1;
    case 6:
      return static_cast<double>(random.between(-6, 6)) / 2;
    default:
      return ordinary_real(random);
  }
}

double edge_real(DType dtype, Random& random) {
  switch (random.below(6)) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return std::numeric_limits<double>::infinity();
    case 2:
      return -std::numeric_limits<double>::infinity();
    default:
      return quiet_real(dtype, random);
  }
}

double real_element(DType dtype, TrialKind kind, Random& random) {
  switch (kind) {
    case TrialKind::Ordinary:
      return ordinary_real(random);
    case TrialKind::Quiet:
      return quiet_real(dtype, random);
    case TrialKind::Sparse:
      return ordinary_real(random);
    case TrialKind::Edges:
      return random.chance(50) ? edge_real(dtype, random) : ordinary_real(random);
  }
  return 0;
}

std::int64_t integer_element(DType dtype, TrialKind kind, Random& random) {
  const std::int64_t lowest = lowest_integer(dtype);
  const auto highest =
      static_cast<std::int64_t>(highest_integer(dtype));  // u64's wraps to -1: its bits
  switch (kind) {
    case TrialKind::Ordinary:
    case TrialKind::Sparse:
      return random.between(0, highest == 0 ? 0 : 1);
    case TrialKind::Quiet:
      return random.between(std::max<std::int64_t>(lowest, -3),
                            highest < 0 ? 3 : std::min<std::int64_t>(highest, 3));
    case TrialKind::Edges:
      break;
  }
  switch (random.below(6)) {
    case 0:
      return lowest;
    case 1:
      return highest;
    case 2:
      return lowest < 0 ? -1 : 1;
    case 3:
      return 0;
    case 4:
      return 1;
    default:
      return random.between(std::max<std::int64_t>(lowest, -3),
                            highest < 0 ? 3 : std::min<std::int64_t>(highest, 3));
  }
}

std::int64_t extent_in(const Range& range, Random& random) {
  const std::int64_t wanted[] = {1, 2, 3, 3, 4, 5, 0};
  const std::int64_t extent = wanted[random.below(std::size(wanted))];
  return std::clamp(extent, range.lo, range.hi);
}

class InputMaker {
 public:
  InputMaker(const TrialSettings& settings) : settings_(settings), random_(settings.seed) {}

  void bind(const Type& type) {
    if (!type.is_tensor()) return;
    SymbolRanges symbols;
    for (const Dim& dim : type.tensor().dims) dim.collect_symbols(symbols);
    for (const auto& [symbol, range] : symbols) {
      if (!bindings_.contains(symbol)) bindings_.emplace(symbol, Dim(extent_in(range, random_)));
    }
  }

  Datum make(const Type& type) {
    switch (type.kind()) {
      case Type::Kind::Unknown:
        return tensor(DType::F32, {2, 3});
      case Type::Kind::Tensor:
        return tensor(type.tensor().dtype, shape_of(type.tensor()));
      case Type::Kind::Sequence:
        return sequence(type);
      case Type::Kind::Optional:
        return random_.chance(75) && type.element().is_known()
                   ? Datum::optional(make(type.element()))
                   : Datum();
    }
    return {};
  }

 private:
  Shape shape_of(const TensorType& type) {
    Shape shape;
    for (const Dim& dim : type.dims) {
      const Dim bound = dim.substitute(bindings_);
      // Items of a sequence may have different extents.
      shape.push_back(bound.is_constant() ? bound.constant() : random_.between(1, 3));
    }
    return shape;
  }

  Datum tensor(DType dtype, const Shape& shape) {
    TrialSettings own = settings_;
    own.seed = random_.next();
    return trial_tensor(dtype, shape, own);
  }

  Datum sequence(const Type& type) {
    std::vector<Datum> items;
    const std::size_t count = 1 + random_.below(3);
    for (std::size_t k = 0; k < count; ++k) items.push_back(make(type.element()));
    return Datum::sequence(std::move(items));
  }

  TrialSettings settings_;
  Random random_;
  DimBindings bindings_;
};

}  // namespace

Tensor trial_tensor(DType dtype, const Shape& shape, const TrialSettings& settings) {
  Random random(settings.seed);
  if (dtype == DType::String) {
    static const std::vector<std::string> texts = {"", "a", "b", "Tenon", "1.5", "-3", "a b", "ä"};
    Tensor tensor(dtype, shape);
    for (std::string& text : tensor.mutable_strings()) text = random.pick(texts);
    return tensor;
  }
  Tensor tensor(dtype, shape);
  for (std::int64_t k = 0; k < tensor.size(); ++k) {
    if (dtype == DType::Bool) {
      tensor.set_integer(k, random.between(0, 1));
    } else if (is_integer(dtype)) {
      tensor.set_integer(k, integer_element(dtype, settings.integers, random));
    } else if (is_complex(dtype)) {
      const double real = real_element(dtype, settings.floats, random);
      tensor.set_complex(k, {real, real_element(dtype, settings.floats, random)});
    } else {
      tensor.set_real(k, real_element(dtype, settings.floats, random));
    }
  }
  if (settings.floats == TrialKind::Sparse && is_float(dtype) && tensor.size() > 0 &&
      random.chance(50)) {
    const double values[] = {std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()};
    tensor.set_real(random.between(0, tensor.size() - 1), values[random.below(std::size(values))]);
  }
  return tensor;
}

std::vector<Datum> trial_inputs(const Graph& graph, const TrialSettings& settings) {
  InputMaker maker(settings);
  for (ValueId input : graph.inputs()) maker.bind(graph.value(input).type);
  std::vector<Datum> inputs;
  for (ValueId input : graph.inputs()) inputs.push_back(maker.make(graph.value(input).type));
  return inputs;
}

}  // namespace tenon::testing
