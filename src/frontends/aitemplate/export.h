#pragma once

#include "frontends/aitemplate/tables.h"
#include "frontends/own_node.h"
#include "ir/graph.h"

namespace tenon::aitemplate {

/// What AITemplate would dump of a graph before kernels are profiled. Operators that it lacks stand
/// under Tenon's names with `tenon`, which is what `own_node` makes of them; images in another
/// layout are permuted before and behind a convolution, which `tenon_layout` marks. Throws Error of
/// kind Unsupported that lists sequences, optionals and values whose type is not known.
Dump export_dump(const Graph& graph, const OwnNodes& own = {});

}  // namespace tenon::aitemplate
