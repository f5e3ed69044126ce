#pragma once

#include "ir/type.h"

#include <string>
#include <string_view>
#include <unordered_set>

namespace onnx_schema {
class TypeProto;
}

namespace tenon::onnx {

/// Reads the types that a model declares. Extents without a name become symbols of their own,
/// "value#axis"; those with one keep it.
class TypeReader {
 public:
  /// Unknown where the message says nothing of the element type or rank. Throws Error for extents
  /// that are none, and (Unsupported) for maps, sparse tensors and opaque types.
  Type read(const onnx_schema::TypeProto& proto, std::string_view value_name);

 private:
  Type read_nested(const onnx_schema::TypeProto& proto, std::string_view value_name,
                   bool is_in_sequence);

  std::unordered_set<std::string> used_symbols_;
};

/// Whether nothing that is known of both differs.
bool may_be_equal(const Type& a, const Type& b);

/// The other way round; symbols become dim_param, arithmetic on them its text.
void write_type(const Type& type, onnx_schema::TypeProto& proto);

}  // namespace tenon::onnx
