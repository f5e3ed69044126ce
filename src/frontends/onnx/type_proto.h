#pragma once

#include "ir/type.h"

#include <string>
#include <string_view>
#include <unordered_set>

namespace onnx_schema {
class TypeProto;
}

namespace tenon::frontends::onnx {

/// Reads the types that a model declares. Unnamed extents become new symbols "value#axis"; named
/// ones keep their names.
class TypeReader {
 public:
  /// Returns Unknown for a message without element type or rank. Throws Error for invalid extents,
  /// and (Unsupported) for maps, sparse tensors and opaque types.
  Type read(const onnx_schema::TypeProto& proto, std::string_view value_name);

 private:
  Type read_nested(const onnx_schema::TypeProto& proto, std::string_view value_name,
                   bool is_in_sequence);

  std::unordered_set<std::string> used_symbols_;
};

/// Returns whether the known parts of both types agree.
bool may_be_equal(const Type& a, const Type& b);

/// Writes a type; symbols become dim_param, arithmetic on them its text.
void write_type(const Type& type, onnx_schema::TypeProto& proto);

}  // namespace tenon::frontends::onnx
