#pragma once

namespace tenon {

/// Version in `tenon --version` and reports.
inline constexpr const char* kVersion = "0.1";

}  // namespace tenon
