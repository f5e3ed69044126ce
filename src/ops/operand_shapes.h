#pragma once

#include "ir/type.h"

#include <string_view>

// Checks of operands' shapes that ops share; each throws an Error that starts with the op's name.
namespace tenon {

/// Asks for these extents, as far as they are known.
void require_dims(std::string_view op, std::string_view operand, const TensorType& type,
                  const Dims& dims);
/// Asks that the operand broadcasts to these extents and leaves them as they are.
void require_broadcasts_to(std::string_view op, std::string_view operand, const TensorType& type,
                           const Dims& dims);

}  // namespace tenon
