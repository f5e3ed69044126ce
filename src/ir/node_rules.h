#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon::inline ir {

/// Throws Error if operands, attributes or the number of bodies violate the op's definition. Checks
/// attributes only against dynamic operands; `canonical_attributes` checks the rest.
void check_fit(const OpDef& op, const std::vector<ValueId>& operands, const Attributes& attrs,
               std::size_t body_count);

/// Returns the number of results to infer for a node that lists `listed` results.
std::size_t inferred_count(const OpDef& op, std::size_t listed);

/// Infers the results of a node with these parts. Data-dependent dims are symbols `?0`, `?1`, ….
InferOutput infer_results(const Graph& graph, const OpDef& op, const std::vector<ValueId>& operands,
                          const Attributes& attrs, const std::vector<Graph>& bodies,
                          std::size_t result_count);

/// Returns whether a value of type `declared` can have the type `inferred`: both are equal, except
/// where one of them depends on data and admits the other.
bool types_agree(const Type& declared, const Type& inferred);

/// Returns whether the type is unknown or has data-dependent dims, so that a declared type may be
/// more specific.
bool depends_on_data(const Type& type);

/// Collects the symbols of every dim in the type.
void collect_symbols(const Type& type, SymbolRanges& symbols);

/// Returns "node 'name' (op)", or "node (op)" without a name.
std::string node_location(const OpDef& op, std::string_view name);

}  // namespace tenon::inline ir
