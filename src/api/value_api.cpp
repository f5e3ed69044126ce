#include "api/handles.h"
#include "base/error.h"
#include "embed/call.h"
#include "embed/tensor.h"

using namespace tenon;       // NOLINT: C functions only
using namespace tenon::api;  // NOLINT
using tenon::embed::call;
using tenon::embed::require;

namespace {

constexpr int kMostDepth = 64;

tenon_value add_value(Datum datum) {
  return values().add(std::make_shared<const Datum>(std::move(datum)));
}

const Datum& item_of(const Datum& datum, std::size_t index) {
  if (datum.is_tensor()) throw Error("a tensor has no items", ErrorKind::Usage).got(datum.type());
  if (index >= datum.items().size()) {
    throw Error("the value has fewer items", ErrorKind::Usage)
        .expected("less than ", datum.items().size())
        .got(index);
  }
  return datum.items()[index];
}

int depth_of(const Datum& datum) {
  int depth = 0;
  if (datum.is_tensor()) return depth;
  for (const Datum& item : datum.items()) depth = std::max(depth, depth_of(item) + 1);
  return depth;
}

}  // namespace

namespace tenon::api {

// A kernel-only context takes and returns tensors, in memory allocated here.
std::vector<Datum> run_values(embed::RunContext& context, std::vector<Datum> inputs,
                              std::size_t output_count) {
  if (auto* with_operators = dynamic_cast<ValueContext*>(&context))
    return with_operators->run(inputs);
  std::vector<tenon_tensor> given, made(output_count);
  for (const Datum& input : inputs) {
    if (!input.is_tensor() || input.tensor().dtype() == DType::String)
      throw Error("the program takes tensors of numbers", ErrorKind::Usage).got(input.type());
    const Tensor& tensor = input.tensor();
    given.push_back({const_cast<std::byte*>(tensor.bytes().data()), tensor.shape().data(),
                     nullptr,  // NOLINT: only read
                     static_cast<std::int32_t>(tensor.rank()),
                     static_cast<std::int32_t>(tensor.dtype()) + 1});
  }
  context.bind(given, made);
  std::vector<Tensor> tensors;
  for (tenon_tensor& output : made) {
    tensors.emplace_back(static_cast<DType>(output.dtype - 1),
                         Shape(output.shape, output.shape + output.rank));
    output.data = tensors.back().mutable_bytes().data();
  }
  context.run(given, made, nullptr);
  return {tensors.begin(), tensors.end()};
}

}  // namespace tenon::api

extern "C" {

tenon_status tenon_value_tensor(const tenon_tensor* tensor, tenon_value* value) {
  return call([&] {
    require(tensor, "tensor");
    require(value, "value");
    *value = add_value(copied_tensor(*tensor, "the tensor"));
  });
}

tenon_status tenon_value_strings(const char* const* texts, const size_t* lengths,
                                 const int64_t* shape, int32_t rank, tenon_value* value) {
  return call([&] {
    require(value, "value");
    const tenon_tensor described{nullptr, shape, nullptr, rank, TENON_STRING};
    const std::span<const std::int64_t> extents = embed::shape_of(described, "the tensor");
    const auto count = static_cast<std::size_t>(checked_element_count(extents));
    if (count > 0) {
      require(texts, "texts");
      require(lengths, "lengths");
    }
    std::vector<std::string> strings;
    for (std::size_t k = 0; k < count; ++k) {
      require(texts[k], "texts");
      strings.emplace_back(texts[k], lengths[k]);
    }
    *value =
        add_value(Tensor::of_strings(Shape(extents.begin(), extents.end()), std::move(strings)));
  });
}

tenon_status tenon_value_sequence(const tenon_value* items, size_t count, int32_t dtype,
                                  tenon_value* value) {
  return call([&] {
    require(value, "value");
    if (count > 0) require(items, "items");
    std::vector<Datum> list;
    for (std::size_t k = 0; k < count; ++k) list.push_back(*values().find(items[k]));
    if (count == 0) {
      embed::name_of(dtype);  // refuses invalid types
      *value = add_value(Datum::empty_sequence(static_cast<DType>(dtype - 1)));
      return;
    }
    Datum sequence = Datum::sequence(std::move(list));
    if (depth_of(sequence) > kMostDepth)
      throw Error("sequences inside sequences without end", ErrorKind::Usage);
    *value = add_value(std::move(sequence));
  });
}

tenon_status tenon_value_optional(tenon_value item, tenon_value* value) {
  return call([&] {
    require(value, "value");
    Datum made = item == nullptr ? Datum() : Datum::optional(*values().find(item));
    if (depth_of(made) > kMostDepth)
      throw Error("optionals inside optionals without end", ErrorKind::Usage);
    *value = add_value(std::move(made));
  });
}

tenon_status tenon_value_look(tenon_value value, tenon_value_kind* kind, tenon_tensor* tensor,
                              size_t* items) {
  return call([&] {
    const auto datum = values().find(value);
    const bool is_sequence = datum->kind() == Type::Kind::Sequence;
    if (kind != nullptr)
      *kind = datum->is_tensor() ? TENON_TENSOR : is_sequence ? TENON_SEQUENCE : TENON_OPTIONAL;
    if (items != nullptr) *items = datum->is_tensor() ? 0 : datum->items().size();
    if (tensor == nullptr) return;
    *tensor = {nullptr, nullptr, nullptr, 0,
               is_sequence ? static_cast<std::int32_t>(datum->element_dtype()) + 1 : 0};
    if (!datum->is_tensor()) return;
    const Tensor& elements = datum->tensor();
    tensor->shape = elements.shape().data();
    tensor->rank = static_cast<std::int32_t>(elements.rank());
    tensor->dtype = static_cast<std::int32_t>(elements.dtype()) + 1;
    if (elements.dtype() != DType::String)
      tensor->data =
          const_cast<std::byte*>(elements.bytes().data());  // NOLINT: C has no pointer to either
  });
}

tenon_status tenon_value_item(tenon_value value, size_t index, tenon_value* item) {
  return call([&] {
    require(item, "item");
    *item = add_value(item_of(*values().find(value), index));
  });
}

tenon_status tenon_value_string(tenon_value value, size_t index, const char** text,
                                size_t* length) {
  return call([&] {
    require(text, "text");
    require(length, "length");
    const auto datum = values().find(value);
    if (!datum->is_tensor() || datum->tensor().dtype() != DType::String)
      throw Error("the value is no tensor of strings", ErrorKind::Usage).got(datum->type());
    const std::span<const std::string> strings = datum->tensor().strings();
    if (index >= strings.size()) {
      throw Error("the tensor has fewer strings", ErrorKind::Usage)
          .expected("less than ", strings.size())
          .got(index);
    }
    *text = strings[index].c_str();
    *length = strings[index].size();
  });
}

tenon_status tenon_value_free(tenon_value value) {
  return call([&] { values().remove(value); });
}

tenon_status tenon_context_run_values(tenon_context context, const tenon_value* inputs,
                                      size_t input_count, tenon_value* outputs,
                                      size_t output_count) {
  return call([&] {
    if (input_count > 0) require(inputs, "inputs");
    if (output_count > 0) require(outputs, "outputs");
    std::vector<Datum> given;
    for (std::size_t k = 0; k < input_count; ++k) given.push_back(*values().find(inputs[k]));
    std::vector<Datum> made =
        run_values(*embed::contexts().find(context), std::move(given), output_count);
    if (made.size() != output_count) {
      throw Error("the program gives another number of outputs", ErrorKind::Usage)
          .expected(made.size())
          .got(output_count);
    }
    for (std::size_t k = 0; k < output_count; ++k) outputs[k] = add_value(std::move(made[k]));
  });
}
}
