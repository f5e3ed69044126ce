#pragma once

#include "documents/aitemplate/tables.h"
#include "documents/native_node.h"
#include "ir/graph.h"

namespace tenon::documents::aitemplate {

/// Returns the dump that AITemplate would write for a graph before profiling. Operators that it
/// lacks keep Tenon's names and carry the native node (`native_node`) in the attribute `tenon`;
/// images in another layout are permuted before and after a convolution, marked by `tenon_layout`.
/// Throws Error of kind Unsupported that lists sequences, optionals and values of unknown type.
Dump export_dump(const Graph& graph, const NativeNodes& own = {});

}  // namespace tenon::documents::aitemplate
