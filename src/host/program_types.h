#pragma once

#include "ir/dim.h"
#include "ir/dtype.h"
#include "program/program.h"

namespace tenon {

/// The type of a buffer's elements. A program has it by name and by size; throws Error where no
/// type has both, as in a damaged file.
DType element_type_of(const Program::Buffer& buffer);

/// An extent as a dim, with the program's symbols by name.
Dim dim_of(const Extent& extent, const Program& program);

}  // namespace tenon
