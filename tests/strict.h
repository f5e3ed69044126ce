#pragma once

#include <cstdlib>

namespace tenon::testing {

/// Makes unsound nests of a candidate fail this process, in place of a warning (`cpu_options`).
inline void be_strict() { setenv("TENON_STRICT", "1", 0); }

}  // namespace tenon::testing
