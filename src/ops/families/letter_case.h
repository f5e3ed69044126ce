#pragma once

#include <string>
#include <string_view>

namespace tenon::inline ops {

/// Converts letters to lower (upper) case one to one. Bytes that are not UTF-8 stay.
std::string to_lower_case(std::string_view text);
std::string to_upper_case(std::string_view text);

}  // namespace tenon::inline ops
