#pragma once

#include "ir/type.h"

#include <string_view>

// Shared checks of operand shapes. Each throws an Error that starts with the op's name.
namespace tenon::inline ops {

/// Requires these extents, as far as they are known.
void require_dims(std::string_view op, std::string_view operand, const TensorType& type,
                  const Dims& dims);
/// Requires that the operand broadcasts to these extents without enlarging them.
void require_broadcasts_to(std::string_view op, std::string_view operand, const TensorType& type,
                           const Dims& dims);

}  // namespace tenon::inline ops
