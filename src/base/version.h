#pragma once

namespace tenon::inline base {

/// Version in `tenon --version` and reports.
inline constexpr const char* kVersion = "0.1";

}  // namespace tenon::inline base
