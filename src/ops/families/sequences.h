#pragma once

#include "ops/definition/evaluation.h"
#include "ops/definition/operand_types.h"

#include <string_view>

namespace tenon::inline ops {

/// Returns the item type of a sequence operand; Unknown if it is unknown. Throws Error for other
/// operands. Extents that differ between items are new unknowns at each call.
Type item_type(const OperandTypes& in, std::string_view operand);
/// Returns the item type of any type; `op` is for messages.
Type item_type(std::string_view op, const Type& sequence, const OperandTypes& in);

/// Returns the items at run time. Throws Error if the operand is not a sequence.
const std::vector<Datum>& items_of(const Evaluation& op, std::string_view operand);

/// Builds a sequence of these items; an empty one has element type `dtype`.
Datum sequence_of(std::vector<Datum> items, DType dtype);

/// Resolves operand "position" in a sequence of `item_count`, where -1 is the last item;
/// `default_position` if it is missing. Throws Error above `highest`.
std::size_t position_operand(const Evaluation& op, std::size_t item_count,
                             std::size_t default_position, std::int64_t highest);

}  // namespace tenon::inline ops
