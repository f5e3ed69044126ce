#pragma once

#include "target/facts.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// Stores a lookup table that a GEMM reads packed, such as the tied embedding of a language model,
/// only in packed form: lookup kernels compute the packed positions. Does not apply if the table
/// has other readers, or if lookups touch more cache lines than the whole table has.
void use_packed_tables(TaskList& list, const TargetFacts& facts);

}  // namespace tenon::codegen
