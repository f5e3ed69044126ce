#pragma once

#include "frontends/relay/ast.h"
#include "ir/type.h"

#include <optional>
#include <string>
#include <string_view>

namespace tenon::relay {

/// Relay's name of an element type: "float32" for f32. Empty where Relay has none.
std::string dtype_name(DType dtype);
std::optional<DType> to_dtype(std::string_view name);

/// The type of a tensor as Relay writes it: extents that are not numbers are `?`, layouts unsaid.
RelayType to_relay(const TensorType& type);
/// And back: a `?` of the tensor called `name` is a symbol of its own.
TensorType from_relay(const RelayType& type, const std::string& name);

}  // namespace tenon::relay
