#include "ir/constant.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/element_access.h"
#include "ir/scaled_elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <system_error>
#include <thread>

namespace tenon::inline ir {

namespace {

constexpr std::int64_t kChunk = 1024;  // even: Box-Muller produces pairs
constexpr std::int64_t kParallelFrom = std::int64_t{1} << 20;

// SplitMix64 (Steele, Lea, Flood 2014) as a hash of seed and counter, which gives random access to
// elements.
std::uint64_t hashed(std::uint64_t seed, std::uint64_t counter) {
  std::uint64_t z = seed + (counter + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// Hashes the seed: neighbouring seeds would otherwise give shifted copies of one stream.
std::uint64_t stream_of(std::uint64_t seed) { return hashed(seed, 0x7465'6e6f'6eu); }

double unit_real(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// Fills `values` with normal deviates by the Box-Muller transform; `first` is even.
void fill_normal(std::uint64_t stream, std::int64_t first, double mean, double deviation,
                 std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const auto counter = static_cast<std::uint64_t>(first) + i;
    const double u = 1 - unit_real(hashed(stream, counter));  // in (0, 1], for the logarithm
    const double radius = deviation * std::sqrt(-2 * std::log(u));
    const double angle = 2 * std::numbers::pi * unit_real(hashed(stream, counter + 1));
    values[i] = mean + radius * std::cos(angle);
    if (i + 1 < values.size()) values[i + 1] = mean + radius * std::sin(angle);
  }
}

void fill_uniform(std::uint64_t stream, std::int64_t first, double low, double high,
                  std::span<double> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double u = unit_real(hashed(stream, static_cast<std::uint64_t>(first) + i));
    values[i] = std::min(high, low + (high - low) * u);
  }
}

void fill_uniform_integers(std::uint64_t stream, std::int64_t first, std::int64_t low,
                           std::int64_t high, std::span<std::int64_t> values) {
  const std::uint64_t count =
      static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;  // 0 represents 2^64
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = hashed(stream, static_cast<std::uint64_t>(first) + i);
    const auto step =
        count == 0
            ? bits
            : static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * count) >> 64);
    values[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
  }
}

/// Returns the dtype's nearest integer, for bounds given as reals.
std::int64_t clamped_integer(DType dtype, double value) {
  const auto low = static_cast<double>(lowest_integer(dtype));
  const auto high = static_cast<double>(highest_integer(dtype));
  if (!(value > low)) return lowest_integer(dtype);
  if (value >= high || value >= 0x1p63) return static_cast<std::int64_t>(highest_integer(dtype));
  return static_cast<std::int64_t>(value);
}

/// Generates elements [begin, end), counted in reals: a complex element is two reals.
void fill_run(const Constant& constant, std::int64_t begin, std::int64_t end, std::byte* data) {
  const DType dtype = constant.dtype();
  const bool is_whole = is_integer(dtype) || dtype == DType::Bool;
  const DType part = dtype == DType::C64 ? DType::F32 : dtype == DType::C128 ? DType::F64 : dtype;
  const auto step = static_cast<std::int64_t>(info(part).storage_bytes);
  const std::uint64_t stream = stream_of(constant.seed());
  double reals[kChunk];
  std::int64_t integers[kChunk];
  for (std::int64_t first = begin; first < end; first += kChunk) {
    const auto count = static_cast<std::size_t>(std::min(kChunk, end - first));
    std::byte* out = data + first * step;
    if (constant.kind() == Constant::Kind::Uniform && is_whole) {
      fill_uniform_integers(stream, first, clamped_integer(dtype, std::ceil(constant.first())),
                            clamped_integer(dtype, std::floor(constant.second())),
                            {integers, count});
      elements::store_integers(part, std::span(integers, count), false, out);
      continue;
    }
    if (constant.kind() == Constant::Kind::Uniform) {
      fill_uniform(stream, first, constant.first(), constant.second(), {reals, count});
    } else {
      fill_normal(stream, first, constant.first(), constant.second(), {reals, count});
    }
    if (is_whole) {  // rounds to nearest and clamps to the bounds
      for (double& value : std::span(reals, count)) value = std::nearbyint(value);
      for (std::size_t i = 0; i < count; ++i) integers[i] = clamped_integer(dtype, reals[i]);
      elements::store_integers(part, std::span(integers, count), false, out);
    } else {
      elements::store_reals(part, std::span(reals, count), out);
    }
  }
}

void fill_random(const Constant& constant, Tensor& tensor) {
  const std::int64_t count = tensor.size() * (is_complex(tensor.dtype()) ? 2 : 1);
  std::byte* data = tensor.mutable_bytes().data();
  if (count < kParallelFrom) return fill_run(constant, 0, count, data);
  const std::int64_t half = count / 2 / kChunk * kChunk;
  std::jthread other;
  try {
    other = std::jthread([&] { fill_run(constant, 0, half, data); });
  } catch (const std::system_error&) {  // no thread available
    fill_run(constant, 0, half, data);
  }
  fill_run(constant, half, count, data);
}

/// Doubles the initialized prefix until the tensor is full.
void fill_with_one(const Tensor& scalar, Tensor& tensor) {
  if (tensor.size() == 0) return;
  if (tensor.dtype() == DType::String) {
    for (std::string& text : tensor.mutable_strings()) text = scalar.strings()[0];
    return;
  }
  const auto one = scalar.bytes();
  if (std::all_of(one.begin(), one.end(), [](std::byte b) { return b == std::byte{0}; })) return;
  const std::span<std::byte> bytes = tensor.mutable_bytes();
  std::copy(one.begin(), one.end(), bytes.begin());
  for (std::size_t done = one.size(); done < bytes.size(); done *= 2) {
    std::memcpy(bytes.data() + done, bytes.data(), std::min(done, bytes.size() - done));
  }
}

void require_numeric(DType dtype) {
  if (dtype == DType::String) {
    throw Error("a random fill needs numbers").got("dtype string");
  }
}

}  // namespace

/// Scale factors (the base class) and the constant that they scale.
struct Constant::Scaling : Tensor {
  Scaling(Tensor factors, Constant scaled) : Tensor(std::move(factors)), base(std::move(scaled)) {}
  Constant base;
};

Constant::Constant(Tensor dense)
    : dtype_(dense.dtype()),
      shape_(dense.shape()),
      stored_(std::make_shared<const Tensor>(std::move(dense))) {}

Constant Constant::splat(Tensor scalar, Shape shape) {
  TENON_ASSERT(scalar.size() == 1, "one element is repeated");
  checked_element_count(shape);
  Constant constant(scalar.reshaped({}));
  constant.kind_ = Kind::Splat;
  constant.shape_ = std::move(shape);
  return constant;
}

Constant Constant::normal(DType dtype, Shape shape, std::uint64_t seed, double mean,
                          double deviation) {
  require_numeric(dtype);
  checked_element_count(shape);
  Constant constant;
  constant.kind_ = Kind::Normal;
  constant.dtype_ = dtype;
  constant.shape_ = std::move(shape);
  constant.seed_ = seed;
  constant.first_ = mean;
  constant.second_ = deviation;
  return constant;
}

Constant Constant::uniform(DType dtype, Shape shape, std::uint64_t seed, double low, double high) {
  const bool is_whole = is_integer(dtype) || dtype == DType::Bool;
  if (is_whole ? !(std::ceil(low) <= std::floor(high)) : !(low <= high)) {
    throw Error("a uniform fill has nothing to choose from")
        .expected("low <= high")
        .got("low ", format_real(low), ", high ", format_real(high));
  }
  Constant constant = normal(dtype, std::move(shape), seed, low, high);
  constant.kind_ = Kind::Uniform;
  return constant;
}

Constant Constant::scaled(Constant base, Tensor factors) {
  require_scalable(base, factors);
  Constant constant;
  constant.kind_ = Kind::Scaled;
  constant.dtype_ = base.dtype();
  constant.shape_ = base.shape();
  constant.stored_ = std::make_shared<const Scaling>(std::move(factors), std::move(base));
  return constant;
}

TensorType Constant::type() const { return {dtype_, Dims(shape_.begin(), shape_.end()), {}}; }

const Tensor& Constant::stored() const {
  TENON_ASSERT(kind_ == Kind::Dense || kind_ == Kind::Splat, "the constant's elements are stored");
  TENON_ASSERT(stored_ != nullptr, "the constant has a value");
  return *stored_;
}

const Constant& Constant::base() const {
  return kind_ == Kind::Scaled ? static_cast<const Scaling&>(*stored_).base : *this;
}

const Tensor& Constant::factors() const {
  TENON_ASSERT(kind_ == Kind::Scaled, "the constant is scaled");
  return *stored_;
}

Tensor Constant::materialise() const {
  if (kind_ == Kind::Dense) return stored();
  if (kind_ == Kind::Scaled) return scaled_elements(base(), factors());
  Tensor tensor(dtype_, shape_);
  if (kind_ == Kind::Splat) {
    fill_with_one(stored(), tensor);
  } else {
    fill_random(*this, tensor);
  }
  return tensor;
}

bool identical(const Constant& a, const Constant& b) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  if (a.kind() != b.kind() || a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.kind() == Constant::Kind::Dense || a.kind() == Constant::Kind::Splat) {
    return identical(a.stored(), b.stored());
  }
  if (a.kind() == Constant::Kind::Scaled) {
    return identical(a.factors(), b.factors()) && identical(a.base(), b.base());
  }
  return a.seed() == b.seed() && bits(a.first()) == bits(b.first()) &&
         bits(a.second()) == bits(b.second());
}

}  // namespace tenon::inline ir
