#include "api/handles.h"
#include "base/error.h"
#include "embed/tensor.h"

#include <cstring>

namespace tenon::api {
namespace {

// The ABI numbers element types like the IR, but from 1; a test compares the two tables.
DType dtype_of(std::int32_t number) {
  embed::name_of(number);  // refuses others
  return static_cast<DType>(number - 1);
}
std::int32_t number_of(DType dtype) { return static_cast<std::int32_t>(dtype) + 1; }

}  // namespace

Tensor borrowed_tensor(const tenon_tensor& tensor, const std::string& name) {
  embed::require_usable(tensor, name);
  const std::span<const std::int64_t> shape = embed::shape_of(tensor, name);
  const std::uint64_t bytes = embed::byte_count(tensor, name);
  if (bytes == 0) return {dtype_of(tensor.dtype), Shape(shape.begin(), shape.end())};
  // A non-owning reference: the caller keeps the memory alive during the call.
  const std::shared_ptr<const void> nobody(tensor.data, [](const void*) {});
  return Tensor::borrow(dtype_of(tensor.dtype), Shape(shape.begin(), shape.end()), nobody,
                        {static_cast<const std::byte*>(tensor.data), bytes});
}

Tensor copied_tensor(const tenon_tensor& tensor, const std::string& name) {
  const Tensor borrowed = borrowed_tensor(tensor, name);
  Tensor copy(borrowed.dtype(), borrowed.shape());
  if (borrowed.byte_size() > 0)
    std::memcpy(copy.mutable_bytes().data(), borrowed.bytes().data(), borrowed.byte_size());
  return copy;
}

void require_fits(const TensorType& made, const tenon_tensor& wanted, const std::string& name) {
  if (made.dtype == DType::String) {
    throw Error(concat(name, " is of strings"), ErrorKind::Usage)
        .hint("tenon_context_run_values gives them");
  }
  if (wanted.data == nullptr) return;
  embed::require_usable(wanted, name);
  const std::span<const std::int64_t> shape = embed::shape_of(wanted, name);
  if (wanted.dtype == number_of(made.dtype) && made.dims == Dims(shape.begin(), shape.end()))
    return;
  throw Error(concat(name, " has another type than comes out"), ErrorKind::Usage)
      .expected(made)
      .got(embed::type_text(wanted));
}

void give(const Tensor& made, tenon_tensor& wanted, Tensor& kept, const std::string& name) {
  require_fits(made.type(), wanted, name);
  if (wanted.data == nullptr) {
    kept = made;
    wanted.shape = kept.shape().data();
    wanted.strides = nullptr;
    wanted.rank = static_cast<std::int32_t>(kept.rank());
    wanted.dtype = number_of(made.dtype());
    wanted.data =
        const_cast<std::byte*>(kept.bytes().data());  // NOLINT: C has no pointer to either
    return;
  }
  if (made.byte_size() > 0) std::memcpy(wanted.data, made.bytes().data(), made.byte_size());
}

Models& model_handles() {
  static Models table("model");
  return table;
}
Trainers& trainers() {
  static Trainers table("trainer");
  return table;
}
Values& values() {
  static Values table("value");
  return table;
}

}  // namespace tenon::api
