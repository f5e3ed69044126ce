#pragma once

#include <string>

namespace tenon {

/// A finite number as Python writes it: the shortest digits that read back the same, with an
/// exponent below 1e-4 and from 1e16 on.
std::string python_real(double value);

}  // namespace tenon
