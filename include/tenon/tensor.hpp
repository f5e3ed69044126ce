// Parts of tenon/tenon.hpp: errors, owning handles, views of memory.
#ifndef TENON_TENSOR_HPP
#define TENON_TENSOR_HPP

#include "tenon/tenon.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon {
inline namespace v1 {

/// An error, with the library's message.
class Failure : public std::runtime_error {
 public:
  Failure(tenon_status status, const char* text) : std::runtime_error(text), status_(status) {}
  tenon_status status() const { return status_; }

 private:
  tenon_status status_;
};

inline void check(tenon_status status) {
  if (status != TENON_OK) throw Failure(status, tenon_last_error());
}

/// Takes ownership of a text from the library.
inline std::string take(char* text) {
  std::string copy = text == nullptr ? "" : text;
  tenon_text_free(text);
  return copy;
}

template <class Handle, tenon_status (*free_handle)(Handle)>
class Owned {
 public:
  Owned() = default;
  explicit Owned(Handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) free_handle(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

/// The element type of a C++ type.
template <class T>
constexpr tenon_dtype dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) return TENON_F32;
  if constexpr (std::is_same_v<U, double>) return TENON_F64;
  if constexpr (std::is_same_v<U, std::int64_t>) return TENON_I64;
  if constexpr (std::is_same_v<U, std::int32_t>) return TENON_I32;
  if constexpr (std::is_same_v<U, std::int16_t>) return TENON_I16;
  if constexpr (std::is_same_v<U, std::int8_t>) return TENON_I8;
  if constexpr (std::is_same_v<U, std::uint64_t>) return TENON_U64;
  if constexpr (std::is_same_v<U, std::uint32_t>) return TENON_U32;
  if constexpr (std::is_same_v<U, std::uint16_t>) return TENON_U16;
  if constexpr (std::is_same_v<U, std::uint8_t>) return TENON_U8;
  if constexpr (std::is_same_v<U, bool>) return TENON_BOOL;
  return TENON_NO_DTYPE;
}

using Shape = std::vector<std::int64_t>;

/// A non-owning, row-major view of elements. An empty view as output requests memory from the
/// library.
class Tensor {
 public:
  Tensor() = default;
  /// Throws std::invalid_argument if there are fewer elements than the shape requires.
  template <class T, std::size_t N>
  Tensor(std::span<T, N> elements, Shape shape)
      : Tensor(const_cast<std::remove_const_t<T>*>(elements.data()), dtype_of<T>(),
               std::move(shape)) {
    static_assert(dtype_of<T>() != TENON_NO_DTYPE, "no element type: give data and dtype");
    if (elements.size() < size())
      throw std::invalid_argument("a tensor has fewer elements than its shape");
  }
  Tensor(void* data, tenon_dtype dtype, Shape shape)
      : data_(data), shape_(std::move(shape)), dtype_(dtype) {}

  void* data() const { return data_; }
  tenon_dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  std::size_t size() const {
    std::size_t count = 1;
    for (const std::int64_t extent : shape_) count *= static_cast<std::size_t>(extent);
    return count;
  }
  /// Returns the elements; throws std::invalid_argument for another element type.
  template <class T>
  std::span<T> as() const {
    if (dtype_of<T>() != dtype_)
      throw std::invalid_argument("the tensor has elements of another type");
    return {static_cast<T*>(data_), size()};
  }
  tenon_tensor described() const {
    return {data_, shape_.data(), nullptr, static_cast<std::int32_t>(shape_.size()), dtype_};
  }

 private:
  void* data_ = nullptr;
  Shape shape_;
  tenon_dtype dtype_ = TENON_NO_DTYPE;
};

inline std::vector<tenon_tensor> described(std::span<const Tensor> tensors) {
  std::vector<tenon_tensor> list;
  for (const Tensor& tensor : tensors) list.push_back(tensor.described());
  return list;
}

inline std::vector<Tensor> given(std::span<const tenon_tensor> tensors) {
  std::vector<Tensor> list;
  for (const tenon_tensor& tensor : tensors) {
    list.emplace_back(tensor.data, static_cast<tenon_dtype>(tensor.dtype),
                      Shape(tensor.shape, tensor.shape + tensor.rank));
  }
  return list;
}

}  // namespace v1
}  // namespace tenon

#endif
