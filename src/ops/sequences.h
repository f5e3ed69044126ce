#pragma once

#include "ops/evaluation.h"
#include "ops/operand_types.h"

#include <string_view>

namespace tenon {

/// The type of the items of a sequence operand. Throws Error if it is something else; Unknown if
/// nothing is known. Extents that differ from item to item are new unknowns at each call.
Type item_type(const OperandTypes& in, std::string_view operand);
/// The same for any type, with `op` for the message.
Type item_type(std::string_view op, const Type& sequence, const OperandTypes& in);

/// The items at run time. Throws Error if the operand is no sequence.
const std::vector<Datum>& items_of(const Evaluation& op, std::string_view operand);

/// A sequence of these items, empty ones holding `dtype`.
Datum sequence_of(std::vector<Datum> items, DType dtype);

/// The position that operand "position" gives in a sequence of `item_count`, where -1 is the last
/// item; `default_position` if it is missing. At most `highest` by promise, else throws Error.
std::size_t position_operand(const Evaluation& op, std::size_t item_count,
                             std::size_t default_position, std::int64_t highest);

}  // namespace tenon
