#pragma once

#include <string>

namespace tenon::documents {

/// Prints a finite number like Python: the shortest digits that round-trip, with an exponent below
/// 1e-4 and from 1e16 on.
std::string python_real(double value);

}  // namespace tenon::documents
