#pragma once

#include "tenon/plugin.h"

#include <string>
#include <string_view>

namespace tenon::inline ops {

/// Loads operators from a shared object (`tenon/plugin.h`), which stays loaded; loading it again
/// has no effect. Throws Error (Usage) for a file that is not a plug-in, and for an operator that
/// another plug-in defines.
void load_plugin(const std::string& path);

/// Returns the plug-in operator "domain.Name", or null.
const tenon_custom_op* find_custom_op(std::string_view name);

/// Returns "domain.Name", or "Name" for ONNX's default domain.
std::string custom_op_name(std::string_view domain, std::string_view name);

}  // namespace tenon::inline ops
