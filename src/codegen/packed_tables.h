#pragma once

#include "target/facts.h"
#include "tasks/task_list.h"

namespace tenon::codegen {

/// A table whose rows the data looks up and that a product reads packed, as the words of a language
/// model, is kept in the packed form alone: kernels that look rows up find their elements there.
/// Not where somebody reads the table otherwise, or so many elements are looked up that their lines
/// of memory are more than the table.
void look_up_packed(TaskList& list, const TargetFacts& facts);

}  // namespace tenon::codegen
