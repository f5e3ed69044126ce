#pragma once

#include "program/binary.h"
#include "program/program.h"

namespace tenon {

/// Serializes a program except its code and its constants. Reading checks that ids are in range;
/// `verify` checks everything else.
void write_tables(Writer& out, const Program& program);
Program read_tables(Reader& in);

}  // namespace tenon
