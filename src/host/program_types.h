#pragma once

#include "ir/dim.h"
#include "ir/dtype.h"
#include "program/program.h"

namespace tenon::inline host {

/// Returns the element type of a buffer. A program stores its name and size; throws Error if no
/// type has both, as in a damaged file.
DType element_type_of(const Program::Buffer& buffer);

/// Converts an extent to a dim, with the program's symbols by name.
Dim dim_of(const Extent& extent, const Program& program);

}  // namespace tenon::inline host
