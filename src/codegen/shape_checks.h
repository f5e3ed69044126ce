#pragma once

#include "ir/constraint.h"
#include "program/shape_check.h"

#include <map>
#include <string>
#include <vector>

namespace tenon::codegen {

/// The constraints of a graph as checks of a program. One that speaks of a symbol that is not among
/// the program's, by number, is left to whoever knows it: another part, or the operator that is
/// given the data.
std::vector<ShapeCheck> shape_checks(const Graph& graph,
                                     const std::map<std::string, std::size_t>& symbols);

}  // namespace tenon::codegen
