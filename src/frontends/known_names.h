#pragma once

#include <string_view>

namespace tenon::frontends {

/// Throws Error unless `name` is one of `known`, which spaces separate; offers the nearest one.
void require_attribute(std::string_view owner, std::string_view name, std::string_view known);

}  // namespace tenon::frontends
