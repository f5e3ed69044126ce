#include "frontends/onnx/datum_proto.h"

#include "base/error.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"

#include <google/protobuf/io/coded_stream.h>

#include <climits>

namespace tenon::frontends::onnx {
namespace {

using onnx_schema::OptionalProto;
using onnx_schema::SequenceProto;
using onnx_schema::TensorProto;

constexpr int kMaxNesting = 50;

template <class Message>
Message parse(std::span<const std::byte> bytes, std::string_view name) {
  Message message;
  if (bytes.size() <= INT_MAX) {
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    in.SetRecursionLimit(kMaxNesting);
    if (message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage()) return message;
  }
  throw Error(concat("not a serialized ", name, ", or damaged"));
}

Error not_supported(std::string_view what) {
  return Error(concat("test data: ", what, " are not supported"), ErrorKind::Unsupported);
}

Datum take_sequence(SequenceProto& proto);

Datum take_optional(OptionalProto& proto) {
  ExternalFiles none;
  if (proto.has_tensor_value())
    return Datum::optional(take_tensor(*proto.mutable_tensor_value(), none));
  if (proto.has_sparse_tensor_value()) {
    return Datum::optional(read_sparse_tensor(proto.sparse_tensor_value(), none).materialise());
  }
  if (proto.has_sequence_value()) {
    return Datum::optional(take_sequence(*proto.mutable_sequence_value()));
  }
  if (proto.has_optional_value()) {
    return Datum::optional(take_optional(*proto.mutable_optional_value()));
  }
  if (proto.has_map_value()) throw not_supported("maps");
  return {};
}

Datum take_sequence(SequenceProto& proto) {
  ExternalFiles none;
  std::vector<Datum> items;
  for (TensorProto& tensor : *proto.mutable_tensor_values()) {
    items.emplace_back(take_tensor(tensor, none));
  }
  for (const auto& sparse : proto.sparse_tensor_values()) {
    items.emplace_back(read_sparse_tensor(sparse, none).materialise());
  }
  for (SequenceProto& sequence : *proto.mutable_sequence_values()) {
    items.push_back(take_sequence(sequence));
  }
  for (OptionalProto& optional : *proto.mutable_optional_values()) {
    items.push_back(take_optional(optional));
  }
  if (proto.map_values_size() > 0) throw not_supported("maps");
  return Datum::sequence(std::move(items));
}

void write_optional(const Datum& datum, OptionalProto& proto);

void write_sequence(const Datum& datum, SequenceProto& proto) {
  proto.set_elem_type(SequenceProto::TENSOR);
  for (const Datum& item : datum.items()) {
    switch (item.kind()) {
      case Type::Kind::Tensor:
        write_tensor(item.tensor(), *proto.add_tensor_values());
        break;
      case Type::Kind::Sequence:
        proto.set_elem_type(SequenceProto::SEQUENCE);
        write_sequence(item, *proto.add_sequence_values());
        break;
      default:
        proto.set_elem_type(SequenceProto::OPTIONAL);
        write_optional(item, *proto.add_optional_values());
    }
  }
}

void write_optional(const Datum& datum, OptionalProto& proto) {
  if (datum.items().empty()) return;
  const Datum& item = datum.items().front();
  switch (item.kind()) {
    case Type::Kind::Tensor:
      proto.set_elem_type(SequenceProto::TENSOR);
      return write_tensor(item.tensor(), *proto.mutable_tensor_value());
    case Type::Kind::Sequence:
      proto.set_elem_type(SequenceProto::SEQUENCE);
      return write_sequence(item, *proto.mutable_sequence_value());
    default:
      proto.set_elem_type(SequenceProto::OPTIONAL);
      return write_optional(item, *proto.mutable_optional_value());
  }
}

}  // namespace

Datum read_datum(std::span<const std::byte> bytes, const Type& type) {
  switch (type.kind()) {
    case Type::Kind::Sequence: {
      auto proto = parse<SequenceProto>(bytes, "SequenceProto");
      Datum datum = take_sequence(proto);
      const bool knows_dtype = type.element().is_tensor();
      if (!datum.items().empty() || !knows_dtype) return datum;
      return Datum::empty_sequence(type.element().tensor().dtype);
    }
    case Type::Kind::Optional: {
      auto proto = parse<OptionalProto>(bytes, "OptionalProto");
      return take_optional(proto);
    }
    default: {
      auto proto = parse<TensorProto>(bytes, "TensorProto");
      // Test data of ONNX before 1.13 stores the bits of bfloat16 as uint16.
      if (type.is_tensor() && type.tensor().dtype == DType::BF16 &&
          proto.data_type() == TensorProto::UINT16) {
        proto.set_data_type(TensorProto::BFLOAT16);
      }
      ExternalFiles none;
      return take_tensor(proto, none);
    }
  }
}

Datum read_datum_file(const std::string& path, const Type& type) try {
  return read_datum(MappedFile::open(path)->bytes(), type);
} catch (Error& error) {
  throw error.has_place() ? error : error.at(path);
}

std::string write_datum(const Datum& datum) {
  switch (datum.kind()) {
    case Type::Kind::Sequence: {
      SequenceProto proto;
      write_sequence(datum, proto);
      return proto.SerializeAsString();
    }
    case Type::Kind::Optional: {
      OptionalProto proto;
      write_optional(datum, proto);
      return proto.SerializeAsString();
    }
    default: {
      TensorProto proto;
      write_tensor(datum.tensor(), proto);
      return proto.SerializeAsString();
    }
  }
}

}  // namespace tenon::frontends::onnx
