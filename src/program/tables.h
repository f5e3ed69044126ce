#pragma once

#include "program/binary.h"
#include "program/program.h"

namespace tenon {

/// All of a program but its code and its constants. What is read back holds together as far as
/// numbers name something that there is; `verify` asks for the rest.
void write_tables(Writer& out, const Program& program);
Program read_tables(Reader& in);

}  // namespace tenon
