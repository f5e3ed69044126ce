#pragma once

#include "documents/relay/ast.h"
#include "ir/type.h"

#include <optional>
#include <string>
#include <string_view>

namespace tenon::documents::relay {

/// Relay's name of an element type: "float32" for f32. Empty for types that Relay lacks.
std::string dtype_name(DType dtype);
std::optional<DType> to_dtype(std::string_view name);

/// Converts a tensor type to Relay's: symbolic extents are `?`, layouts are dropped.
RelayType to_relay(const TensorType& type);
/// Converts a type from Relay: a `?` of the tensor called `name` becomes a new symbol.
TensorType from_relay(const RelayType& type, const std::string& name);

}  // namespace tenon::documents::relay
