#pragma once

#include "frontends/aitemplate/tables.h"
#include "ir/graph.h"

#include <map>
#include <string>
#include <string_view>

namespace tenon::aitemplate {

/// The network of a dump: images channels last, weights (CO, KH, KW, CI), parameters seeded by
/// their names, fused groups as one node each, strided accesses as slices and concatenations.
/// Throws Error; of kind Unsupported, with all of them, where there are operators that Tenon lacks.
Graph import_dump(const Dump& dump, std::string_view source);

/// The layouts that convolutions and poolings ask of tensors that nobody makes, by name.
std::map<std::string, std::string> asked_layouts(const Dump& dump);

/// The Tenon operator's mark on a change of layout that the writer put in.
bool is_layout_change(const OperatorRow& row);

/// A graph's metadata about a dim whose name somebody gave: its values and where it stands.
std::string dim_metadata_key(std::string_view dim_name);

}  // namespace tenon::aitemplate
