#pragma once

#include "program/binary.h"
#include "program/program.h"

namespace tenon::inline program {

/// Serializes a program except its code and its constants. Reading checks that ids are in range;
/// `verify` checks everything else.
void write_tables(BinaryWriter& out, const Program& program);
Program read_tables(BinaryReader& in);

}  // namespace tenon::inline program
