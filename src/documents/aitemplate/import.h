#pragma once

#include "documents/aitemplate/tables.h"
#include "ir/graph.h"

#include <map>
#include <string>
#include <string_view>

namespace tenon::documents::aitemplate {

/// Imports the network of a dump: images in channels-last layout, weights (CO, KH, KW, CI),
/// parameters seeded by name, fused groups as one node each, strided accesses as slices and
/// concatenations. Throws Error; of kind Unsupported, with the whole list, for operators without an
/// equivalent.
Graph import_dump(const Dump& dump, std::string_view source);

/// Returns the layouts that convolutions and poolings require of source tensors, by name.
std::map<std::string, std::string> requested_layouts(const Dump& dump);

/// Returns whether the operator is a layout change that the exporter inserted.
bool is_layout_change(const OperatorRow& row);

/// Returns the metadata key of a user-named dim; the entry has its values and occurrences.
std::string dim_metadata_key(std::string_view dim_name);

}  // namespace tenon::documents::aitemplate
