#pragma once

#include "tenon/plugin.h"

#include <string>
#include <string_view>

namespace tenon {

/// Loads operators from a shared object (`tenon/plugin.h`), which stays loaded; one that is loaded
/// already is left as it is. Throws Error (Usage) for a file that is no plug-in, and for an
/// operator that another one has.
void load_plugin(const std::string& path);

/// The operator that a plug-in has under "domain.Name"; null where none has.
const tenon_custom_op* find_custom_op(std::string_view name);

/// "domain.Name", "Name" where the domain is ONNX's own.
std::string custom_op_name(std::string_view domain, std::string_view name);

}  // namespace tenon
