#include "frontends/onnx/type_proto.h"

#include "base/error.h"
#include "frontends/onnx/export_node.h"
#include "frontends/onnx/schema/onnx.pb.h"
#include "frontends/onnx/tensor_proto.h"

#include <algorithm>

namespace tenon::onnx {
namespace {

using onnx_schema::TensorShapeProto;
using onnx_schema::TypeProto;

// '?' and '#' mark extents that only values can tell; a model's own name must not look like one.
bool is_usable_name(std::string_view name) {
  return !name.empty() && name.front() != '?' && name.find('#') == std::string_view::npos;
}

DType known_dtype(int element_type) {
  const std::optional<DType> dtype = dtype_of(element_type);
  if (!dtype) {
    throw Error(concat("no element type has the number ", element_type), ErrorKind::Unsupported);
  }
  return *dtype;
}

}  // namespace

Type TypeReader::read(const TypeProto& proto, std::string_view value_name) {
  return read_nested(proto, value_name, false);
}

Type TypeReader::read_nested(const TypeProto& proto, std::string_view value_name,
                             bool is_in_sequence) {
  switch (proto.value_case()) {
    case TypeProto::VALUE_NOT_SET:
      return {};
    case TypeProto::kSequenceType:
      return Type::sequence(read_nested(proto.sequence_type().elem_type(), value_name, true));
    case TypeProto::kOptionalType:
      return Type::optional(
          read_nested(proto.optional_type().elem_type(), value_name, is_in_sequence));
    case TypeProto::kMapType:
      throw Error("a value is a map", ErrorKind::Unsupported);
    case TypeProto::kOpaqueType:
      throw Error("a value is of an opaque type", ErrorKind::Unsupported);
    case TypeProto::kSparseTensorType:
      throw Error("a value is a sparse tensor", ErrorKind::Unsupported);
    case TypeProto::kTensorType:
      break;
  }
  const TypeProto::Tensor& tensor = proto.tensor_type();
  if (tensor.elem_type() == 0 || !tensor.has_shape()) return {};
  TensorType type{known_dtype(tensor.elem_type()), {}, {}};
  for (const TensorShapeProto::Dimension& dim : tensor.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() > kMaxExtent) {
      throw Error("an extent is too large").got(dim.dim_value());
    }
    // Some writers say -1 for an extent they do not know.
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      type.dims.emplace_back(dim.dim_value());
    } else if (dim.has_dim_param() && is_usable_name(dim.dim_param())) {
      type.dims.push_back(Dim::symbol(dim.dim_param()));
    } else if (is_in_sequence) {
      return {};  // each element may have its own
    } else {
      std::string symbol = concat(value_name, "#", type.dims.size());
      while (!used_symbols_.insert(symbol).second) symbol += "_1";
      type.dims.push_back(Dim::symbol(std::move(symbol)));
    }
  }
  return type;
}

bool may_be_equal(const Type& a, const Type& b) {
  if (!a.is_known() || !b.is_known()) return true;
  if (a.kind() != b.kind()) return false;
  if (!a.is_tensor()) return may_be_equal(a.element(), b.element());
  const TensorType &x = a.tensor(), &y = b.tensor();
  return x.dtype == y.dtype && std::equal(x.dims.begin(), x.dims.end(), y.dims.begin(),
                                          y.dims.end(), [](const Dim& m, const Dim& n) {
                                            return !m.is_constant() || !n.is_constant() || m == n;
                                          });
}

void write_type(const Type& type, TypeProto& proto) {
  switch (type.kind()) {
    case Type::Kind::Unknown:
      return;
    case Type::Kind::Sequence:
      return write_type(type.element(), *proto.mutable_sequence_type()->mutable_elem_type());
    case Type::Kind::Optional:
      return write_type(type.element(), *proto.mutable_optional_type()->mutable_elem_type());
    case Type::Kind::Tensor:
      break;
  }
  TypeProto::Tensor& tensor = *proto.mutable_tensor_type();
  tensor.set_elem_type(onnx_element_type(type.tensor().dtype));
  TensorShapeProto& shape = *tensor.mutable_shape();
  for (const Dim& dim : type.tensor().dims) {
    TensorShapeProto::Dimension& written = *shape.add_dim();
    if (dim.is_constant()) {
      written.set_dim_value(dim.constant());
    } else {
      // An extent with a name that the reader made up is left out again.
      const std::string name = dim.symbol_name().value_or(to_string(dim));
      if (is_usable_name(name)) written.set_dim_param(name);
    }
  }
}

}  // namespace tenon::onnx
