#pragma once

#include <string_view>
#include <vector>

namespace tenon {

/// What an operator's definition cannot say: which extents of its operands go together. Reads
/// "x: F n c; b: F c; axis = 1": operands by name with a dtype and dims, then attributes. A letter
/// is an extent, the same wherever it stands; a number is itself; `_` in an attribute is any small
/// number. Dtypes: `T` any, `F` a float, `I` an index, `B` bool, or one by its name; `T` and `F`
/// are one dtype throughout. `x*3: …` gives a variadic operand three times.
std::vector<std::string_view> hints_of(std::string_view op);

/// Operators that need what no random value is: encoded images, bodies (motifs have some).
bool is_left_to_others(std::string_view op);

}  // namespace tenon
