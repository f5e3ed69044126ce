#include "ir/tensor.h"

#include "base/error.h"
#include "base/text.h"
#include "ir/element_access.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace tenon::inline ir {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kConverted = 512;
constexpr std::int64_t kAddressableBytes = std::int64_t{1} << 46;  // larger requests always fail

using Strings = std::vector<std::string>;

std::string type_text(DType dtype, std::span<const std::int64_t> shape) {
  return to_string(TensorType{dtype, Dims(shape.begin(), shape.end()), {}});
}

[[noreturn]] void throw_no_memory(DType dtype, const Shape& shape, std::uint64_t bytes) {
  throw Error(concat("out of memory for a tensor of ", type_text(dtype, shape)),
              ErrorKind::OutOfMemory)
      .got(format_bytes(bytes));
}

/// Allocates zero pages that the system maps lazily on first touch.
std::pair<std::shared_ptr<void>, std::byte*> allocate_zeros(std::size_t bytes) {
  void* block = std::calloc(bytes + kAlignment, 1);
  if (block == nullptr) throw std::bad_alloc();
  std::shared_ptr<void> owner(block, std::free);
  std::size_t space = bytes + kAlignment;
  void* data = std::align(kAlignment, bytes, block, space);
  return {std::move(owner), static_cast<std::byte*>(data)};
}

std::size_t alignment_of(DType dtype) {
  return is_complex(dtype) ? info(dtype).storage_bytes / 2 : info(dtype).storage_bytes;
}

void require_index(std::int64_t index, std::int64_t size) {
  TENON_ASSERT(index >= 0 && index < size, "the index lies inside the tensor");
}

}  // namespace

std::int64_t checked_element_count(std::span<const std::int64_t> shape) {
  bool is_empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      throw Error("an extent is negative").got(Dims(shape.begin(), shape.end()));
    }
    is_empty = is_empty || extent == 0;
  }
  if (is_empty) return 0;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count) || count > kMaxExtent) {
      throw Error("a shape has too many elements")
          .expected("at most 2^56")
          .got(Dims(shape.begin(), shape.end()));
    }
  }
  return count;
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), size_(checked_element_count(shape_)) {
  std::int64_t bytes = 0;
  const auto element_bytes = static_cast<std::int64_t>(info(dtype).storage_bytes);
  if (__builtin_mul_overflow(size_, element_bytes, &bytes) || bytes > kMaxExtent) {
    throw Error("a tensor has too many bytes")
        .expected("at most 2^56")
        .got(type_text(dtype, shape_));
  }
  if (bytes > kAddressableBytes) {
    throw_no_memory(dtype, shape_, static_cast<std::uint64_t>(bytes));
  }
  try {
    if (dtype == DType::String) {
      auto strings = std::make_shared<Strings>(static_cast<std::size_t>(size_));
      data_ = reinterpret_cast<const std::byte*>(strings->data());
      owner_ = std::move(strings);
    } else {
      auto [owner, data] = allocate_zeros(static_cast<std::size_t>(bytes));
      owner_ = std::move(owner);
      data_ = data;
    }
  } catch (const std::exception&) {  // bad_alloc, or length_error for strings
    throw_no_memory(dtype, shape_, static_cast<std::uint64_t>(bytes));
  }
}

Tensor Tensor::borrow(DType dtype, Shape shape, std::shared_ptr<const void> owner,
                      std::span<const std::byte> bytes) {
  TENON_ASSERT(dtype != DType::String, "strings are not borrowed as bytes");
  Tensor tensor;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.size_ = checked_element_count(tensor.shape_);
  std::size_t needed = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(tensor.size_), info(dtype).storage_bytes,
                             &needed) ||
      needed != bytes.size()) {
    throw Error("a tensor's data does not fit its type")
        .expected(needed, " bytes for ", type_text(dtype, tensor.shape_))
        .got(bytes.size(), " bytes");
  }
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment_of(dtype) != 0) {
    Tensor copy(dtype, std::move(tensor.shape_));
    if (needed > 0) std::memcpy(copy.mutable_bytes().data(), bytes.data(), needed);
    return copy;
  }
  tensor.owner_ = std::move(owner);
  tensor.data_ = bytes.data();
  tensor.is_borrowed_ = true;
  return tensor;
}

Tensor Tensor::of_strings(Shape shape, std::vector<std::string> strings) {
  const std::int64_t count = checked_element_count(shape);
  if (static_cast<std::size_t>(count) != strings.size()) {
    throw Error("a tensor's data does not fit its type")
        .expected(count, " strings for ", type_text(DType::String, shape))
        .got(strings.size(), " strings");
  }
  Tensor tensor;
  tensor.dtype_ = DType::String;
  tensor.shape_ = std::move(shape);
  tensor.size_ = count;
  auto owner = std::make_shared<Strings>(std::move(strings));
  tensor.data_ = reinterpret_cast<const std::byte*>(owner->data());
  tensor.owner_ = std::move(owner);
  return tensor;
}

Tensor Tensor::scalar(DType dtype, double value) {
  Tensor tensor(dtype, {});
  tensor.set_real(0, value);
  return tensor;
}

Tensor Tensor::of_integers(std::span<const std::int64_t> values) {
  Tensor tensor(DType::I64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as_mutable<std::int64_t>().begin());
  return tensor;
}

TensorType Tensor::type() const { return {dtype_, Dims(shape_.begin(), shape_.end()), {}}; }

std::size_t Tensor::byte_size() const {
  return static_cast<std::size_t>(size_) * info(dtype_).storage_bytes;
}

std::span<std::byte> Tensor::mutable_bytes() {
  if (is_borrowed_ || owner_.use_count() > 1) {
    Tensor copy;
    if (dtype_ == DType::String) {
      copy = of_strings(shape_, Strings(strings().begin(), strings().end()));
    } else {
      copy = Tensor(dtype_, shape_);
      if (size_ > 0) std::memcpy(const_cast<std::byte*>(copy.data_), data_, byte_size());
    }
    *this = std::move(copy);
  }
  return {const_cast<std::byte*>(data_), byte_size()};
}

std::span<const std::string> Tensor::strings() const {
  TENON_ASSERT(dtype_ == DType::String, "the tensor holds strings");
  return as<std::string>();
}

std::span<std::string> Tensor::mutable_strings() {
  TENON_ASSERT(dtype_ == DType::String, "the tensor holds strings");
  return as_mutable<std::string>();
}

namespace {

/// Loads one element through a function for runs of elements.
template <class T, class Load>
T load_one(const Tensor& tensor, std::int64_t index, Load load) {
  require_index(index, tensor.size());
  T value;
  const std::size_t step = info(tensor.dtype()).storage_bytes;
  load(tensor.dtype(), tensor.bytes().data() + static_cast<std::size_t>(index) * step, {&value, 1});
  return value;
}

std::byte* element(Tensor& tensor, std::int64_t index) {
  require_index(index, tensor.size());
  return tensor.mutable_bytes().data() +
         static_cast<std::size_t>(index) * info(tensor.dtype()).storage_bytes;
}

/// Calls `use(first, count)` for chunks whose widened values fit on the stack.
template <class Use>
void for_each_chunk(std::size_t size, Use use) {
  for (std::size_t first = 0; first < size; first += kConverted) {
    use(first, std::min(kConverted, size - first));
  }
}

}  // namespace

double Tensor::real_at(std::int64_t index) const {
  return load_one<double>(*this, index, elements::load_reals);
}

std::int64_t Tensor::integer_at(std::int64_t index) const {
  return load_one<std::int64_t>(*this, index, elements::load_integers);
}

std::complex<double> Tensor::complex_at(std::int64_t index) const {
  return load_one<std::complex<double>>(*this, index, elements::load_complex);
}

void Tensor::set_real(std::int64_t index, double value) {
  const double values[1] = {value};
  elements::store_reals(dtype_, values, element(*this, index));
}

void Tensor::set_integer(std::int64_t index, std::int64_t value) {
  const std::int64_t values[1] = {value};
  elements::store_integers(dtype_, values, false, element(*this, index));
}

void Tensor::set_complex(std::int64_t index, std::complex<double> value) {
  const std::complex<double> values[1] = {value};
  elements::store_complex(dtype_, values, element(*this, index));
}

std::vector<std::int64_t> Tensor::integers() const {
  std::vector<std::int64_t> values(static_cast<std::size_t>(size_));
  elements::load_integers(dtype_, data_, values);
  return values;
}

std::vector<double> Tensor::reals() const {
  std::vector<double> values(static_cast<std::size_t>(size_));
  elements::load_reals(dtype_, data_, values);
  return values;
}

Tensor Tensor::reshaped(Shape shape) const {
  if (checked_element_count(shape) != size_) {
    throw Error("a reshape changes the number of elements")
        .expected(size_, " elements, as in ", type_text(dtype_, shape_))
        .got(type_text(dtype_, shape));
  }
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Tensor Tensor::converted(DType dtype) const {
  if (dtype == dtype_) return *this;
  Tensor result(dtype, shape_);
  const std::size_t from = info(dtype_).storage_bytes, to = info(dtype).storage_bytes;
  const auto size = static_cast<std::size_t>(size_);
  const bool is_unsigned = dtype_ == DType::U64 || (dtype_ == DType::String && dtype == DType::U64);
  const bool goes_by_integer =
      is_integer(dtype_) || dtype_ == DType::Bool || (dtype_ == DType::String && is_integer(dtype));
  if (dtype == DType::String) {
    elements::load_texts(dtype_, data_, result.mutable_strings());
    return result;
  }
  std::byte* out = result.mutable_bytes().data();
  if (goes_by_integer) {
    std::int64_t values[kConverted];
    for_each_chunk(size, [&](std::size_t first, std::size_t count) {
      elements::load_integers(dtype_, data_ + first * from, {values, count});
      elements::store_integers(dtype, std::span(values, count), is_unsigned, out + first * to);
    });
  } else if (is_complex(dtype_)) {
    std::complex<double> values[kConverted];
    for_each_chunk(size, [&](std::size_t first, std::size_t count) {
      elements::load_complex(dtype_, data_ + first * from, {values, count});
      elements::store_complex(dtype, std::span(values, count), out + first * to);
    });
  } else {
    double values[kConverted];
    for_each_chunk(size, [&](std::size_t first, std::size_t count) {
      elements::load_reals(dtype_, data_ + first * from, {values, count});
      elements::store_reals(dtype, std::span(values, count), out + first * to);
    });
  }
  return result;
}

bool identical(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape() || a.size() != b.size()) return false;
  if (a.dtype() == DType::String) {
    return std::equal(a.strings().begin(), a.strings().end(), b.strings().begin());
  }
  if (a.size() == 0 || a.bytes().data() == b.bytes().data()) return true;
  return std::memcmp(a.bytes().data(), b.bytes().data(), a.byte_size()) == 0;
}

}  // namespace tenon::inline ir
