#include "base/error.h"
#include "frontends/onnx/datum_proto.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"
#include "unit/error_text.h"

#include <gtest/gtest.h>

namespace tenon::frontends::onnx::tensor_proto_test {
namespace {

using onnx_schema::TensorProto;
using Integers = std::vector<std::int64_t>;

TensorProto tensor_of(int type, const Shape& dims) {
  TensorProto proto;
  proto.set_data_type(type);
  proto.mutable_dims()->Assign(dims.begin(), dims.end());
  return proto;
}

Tensor read(const TensorProto& proto) {
  ExternalFiles none;
  return read_tensor(proto, nullptr, none);
}

std::string message_of(const TensorProto& proto) {
  return error_summary([&] { read(proto); });
}

TEST(TensorProto, DtypesRoundTrip) {
  for (const DTypeInfo& row : all_dtypes()) {
    Tensor tensor(row.dtype, {3, 3});
    for (std::int64_t k = 0; k < 9; ++k) {
      switch (row.arithmetic) {
        case Arithmetic::Text:
          tensor.mutable_strings()[std::size_t(k)] = "s" + std::to_string(k);
          break;
        case Arithmetic::Complex:
          tensor.set_complex(k, {double(k), 0.5});
          break;
        case Arithmetic::F32:
        case Arithmetic::F64:
          tensor.set_real(k, double(k % 4) - 1);
          break;
        default:
          tensor.set_integer(k, k % 2);
      }
    }
    TensorProto proto;
    write_tensor(tensor, proto);
    EXPECT_EQ(dtype_of(proto.data_type()), row.dtype);
    EXPECT_TRUE(identical(read(proto), tensor)) << row.name;
  }
}

TEST(TensorProto, TypedFieldsHoldEachType) {
  TensorProto floats = tensor_of(TensorProto::FLOAT, {2});
  floats.add_float_data(1.5f), floats.add_float_data(-2);
  EXPECT_EQ(read(floats).reals(), (std::vector<double>{1.5, -2}));

  TensorProto doubles = tensor_of(TensorProto::DOUBLE, {1});
  doubles.add_double_data(0.1);
  EXPECT_EQ(read(doubles).real_at(0), 0.1);

  for (const int type : {TensorProto::INT8, TensorProto::INT16, TensorProto::INT32}) {
    TensorProto integers = tensor_of(type, {2});
    integers.add_int32_data(-3), integers.add_int32_data(7);
    EXPECT_EQ(read(integers).integers(), (Integers{-3, 7})) << type;
  }
  for (const int type : {TensorProto::UINT8, TensorProto::UINT16}) {
    TensorProto integers = tensor_of(type, {1});
    integers.add_int32_data(200);
    EXPECT_EQ(read(integers).integers(), Integers{200}) << type;
  }
  for (const int type : {TensorProto::UINT32, TensorProto::UINT64}) {
    TensorProto integers = tensor_of(type, {1});
    integers.add_uint64_data(4000000000);
    EXPECT_EQ(read(integers).integers(), Integers{4000000000}) << type;
  }
  TensorProto longs = tensor_of(TensorProto::INT64, {1});
  longs.add_int64_data(-5000000000);
  EXPECT_EQ(read(longs).integers(), Integers{-5000000000});

  TensorProto truths = tensor_of(TensorProto::BOOL, {2});
  truths.add_int32_data(2), truths.add_int32_data(0);
  EXPECT_EQ(read(truths).integers(), (Integers{1, 0}));

  TensorProto halves = tensor_of(TensorProto::FLOAT16, {1});
  halves.add_int32_data(0x3c00);
  EXPECT_EQ(read(halves).real_at(0), 1);
  TensorProto brains = tensor_of(TensorProto::BFLOAT16, {1});
  brains.add_int32_data(0xbf80);
  EXPECT_EQ(read(brains).real_at(0), -1);
  TensorProto eights = tensor_of(TensorProto::FLOAT8E4M3FN, {1});
  eights.add_int32_data(0x38);
  EXPECT_EQ(read(eights).real_at(0), 1);

  TensorProto complexes = tensor_of(TensorProto::COMPLEX64, {1});
  complexes.add_float_data(1), complexes.add_float_data(-2);
  EXPECT_EQ(read(complexes).complex_at(0), (std::complex<double>{1, -2}));

  TensorProto texts = tensor_of(TensorProto::STRING, {2});
  texts.add_string_data("a"), texts.add_string_data(std::string("\0b", 2));
  EXPECT_EQ(read(texts).strings()[1], std::string("\0b", 2));
}

TEST(TensorProto, SubByteElementsArePackedFromTheLowBits) {
  TensorProto raw = tensor_of(TensorProto::INT4, {3});
  raw.set_raw_data("\x8f\x07");
  EXPECT_EQ(read(raw).integers(), (Integers{-1, -8, 7}));
  TensorProto entries = tensor_of(TensorProto::UINT4, {3});
  entries.add_int32_data(0x8f), entries.add_int32_data(0x07);
  EXPECT_EQ(read(entries).integers(), (Integers{15, 8, 7}));
  TensorProto pairs = tensor_of(TensorProto::INT2, {5});
  pairs.set_raw_data("\xe4\x03");
  EXPECT_EQ(read(pairs).integers(), (Integers{0, 1, -2, -1, -1}));
  EXPECT_EQ(packed_bytes(read(pairs)), "\xe4\x03");
}

TEST(TensorProto, NormalizesBoolsInRawData) {
  TensorProto proto = tensor_of(TensorProto::BOOL, {2});
  proto.set_raw_data(std::string("\xff\0", 2));
  EXPECT_EQ(read(proto).integers(), (Integers{1, 0}));
}

TEST(TensorProto, ElementsAreNotCopied) {
  auto proto = std::make_shared<TensorProto>(tensor_of(TensorProto::FLOAT, {1024}));
  proto->set_raw_data(std::string(4096, '\0'));
  ExternalFiles none;
  const Tensor shared = read_tensor(*proto, proto, none);
  EXPECT_EQ(static_cast<const void*>(shared.bytes().data()), proto->raw_data().data());
  const void* before = proto->raw_data().data();
  const Tensor taken = take_tensor(*proto, none);
  EXPECT_EQ(static_cast<const void*>(taken.bytes().data()), before);
}

TEST(TensorProto, RefusesDataThatDoesNotFillTheShape) {
  TensorProto claim = tensor_of(TensorProto::FLOAT, {268435456});
  claim.set_raw_data("1234");
  EXPECT_EQ(message_of(claim), "tensor: its data does not fill its shape");
  claim.clear_raw_data();
  EXPECT_EQ(message_of(claim), "tensor: its data does not fill its shape");
  TensorProto nibbles = tensor_of(TensorProto::INT4, {3});
  nibbles.add_int32_data(1), nibbles.add_int32_data(1), nibbles.add_int32_data(1);
  EXPECT_EQ(message_of(nibbles), "tensor: its data does not fill its shape");
  EXPECT_EQ(message_of(tensor_of(TensorProto::STRING, {1000000000})),
            "tensor: its data does not fill its shape");
  EXPECT_EQ(message_of(tensor_of(TensorProto::FLOAT, {0, 5})), "no error");
}

TEST(TensorProto, RefusesInvalidFields) {
  EXPECT_EQ(message_of(tensor_of(0, {})), "tensor: no element type has the number 0");
  EXPECT_EQ(message_of(tensor_of(99, {})), "tensor: no element type has the number 99");
  EXPECT_EQ(message_of(tensor_of(TensorProto::FLOAT, {-1})), "an extent is negative");
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(message_of(tensor_of(TensorProto::FLOAT, {large, large})),
            "a shape has too many elements");
  TensorProto texts = tensor_of(TensorProto::STRING, {1});
  texts.set_raw_data("a");
  EXPECT_EQ(message_of(texts), "tensor: strings cannot be in raw_data");
  TensorProto external = tensor_of(TensorProto::FLOAT, {1});
  external.set_data_location(TensorProto::EXTERNAL);
  EXPECT_EQ(message_of(external), "external data: no 'location' says which file it is in");
}

onnx_schema::SparseTensorProto sparse_of(const Shape& dims, const std::vector<float>& values,
                                         const Shape& index_dims, const Integers& indices) {
  onnx_schema::SparseTensorProto proto;
  proto.mutable_dims()->Assign(dims.begin(), dims.end());
  *proto.mutable_values() =
      tensor_of(TensorProto::FLOAT, {static_cast<std::int64_t>(values.size())});
  proto.mutable_values()->mutable_float_data()->Assign(values.begin(), values.end());
  *proto.mutable_indices() = tensor_of(TensorProto::INT64, index_dims);
  proto.mutable_indices()->mutable_int64_data()->Assign(indices.begin(), indices.end());
  return proto;
}

TEST(SparseTensor, BecomesDense) {
  ExternalFiles none;
  const std::vector<double> expected = {0, 0, 5, 7, 0, 0};
  EXPECT_EQ(read_sparse_tensor(sparse_of({2, 3}, {5, 7}, {2}, {2, 3}), none).materialise().reals(),
            expected);
  EXPECT_EQ(read_sparse_tensor(sparse_of({2, 3}, {5, 7}, {2, 2}, {0, 2, 1, 0}), none)
                .materialise()
                .reals(),
            expected);
}

TEST(SparseTensor, RefusesHostileTensors) {
  ExternalFiles none;
  EXPECT_THROW(read_sparse_tensor(sparse_of({2, 3}, {5}, {1}, {6}), none), Error);
  EXPECT_THROW(read_sparse_tensor(sparse_of({2, 3}, {5}, {1}, {-1}), none), Error);
  EXPECT_THROW(read_sparse_tensor(sparse_of({2, 3}, {5}, {1, 2}, {0, 3}), none), Error);
  EXPECT_THROW(read_sparse_tensor(sparse_of({2, 3}, {5}, {2}, {0, 1}), none), Error);
  EXPECT_THROW(read_sparse_tensor(sparse_of({1 << 20, 1 << 20}, {5}, {1}, {0}), none), Error);
  // All-zero tensors of any size take no element storage.
  const Constant zeros = read_sparse_tensor(sparse_of({1 << 20, 1 << 20}, {}, {0}, {}), none);
  EXPECT_EQ(zeros.kind(), Constant::Kind::Splat);
}

TEST(Datum, SequencesAndOptionalsRoundTrip) {
  const Datum number(Tensor::scalar(DType::I64, 3));
  const Datum list = Datum::sequence({number, Datum(Tensor(DType::I64, {2}))});
  const Type tensors = TensorType{DType::I64, {}, {}};
  const auto again = [](const Datum& datum, const Type& type) {
    const std::string bytes = write_datum(datum);
    return read_datum(std::as_bytes(std::span(bytes)), type);
  };
  EXPECT_TRUE(identical(again(number, tensors).tensor(), number.tensor()));
  EXPECT_EQ(again(list, Type::sequence(tensors)).items().size(), 2u);
  EXPECT_EQ(again(Datum::optional(list), Type::optional(Type::sequence(tensors)))
                .items()
                .at(0)
                .items()
                .size(),
            2u);
  EXPECT_TRUE(again(Datum(), Type::optional(tensors)).items().empty());
  EXPECT_THROW(read_datum(std::as_bytes(std::span("\x0a\xff\xff")), tensors), Error);
}

}  // namespace
}  // namespace tenon::frontends::onnx::tensor_proto_test
