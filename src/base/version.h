#pragma once

namespace tenon {

/// What `tenon --version` and reports say.
inline constexpr const char* kVersion = "0.1";

}  // namespace tenon
