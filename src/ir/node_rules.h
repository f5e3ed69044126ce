#pragma once

#include "ir/graph.h"

#include <string>
#include <vector>

namespace tenon {

/// Throws Error where operands, attributes or the number of bodies are not what the op asks for.
/// Attributes are only held against dynamic operands here; `canonical_attributes` does the rest.
void check_fit(const OpDef& op, const std::vector<ValueId>& operands, const Attributes& attrs,
               std::size_t body_count);

/// How many results inference is asked for, where a node has `listed` of them.
std::size_t inferred_count(const OpDef& op, std::size_t listed);

/// What the op infers for a node with these parts; dims that only values can tell are `?0`, `?1`,
/// ….
InferOutput infer_results(const Graph& graph, const OpDef& op, const std::vector<ValueId>& operands,
                          const Attributes& attrs, const std::vector<Graph>& bodies,
                          std::size_t result_count);

/// Whether a value of type `declared` can be what inference calls `inferred`: the same, except
/// where one of them depends on data and leaves the other room.
bool types_agree(const Type& declared, const Type& inferred);

/// Whether the type says less than a person could: unknown, or with dims that only values can tell.
bool depends_on_data(const Type& type);

/// The symbols of every dim in the type.
void collect_symbols(const Type& type, SymbolRanges& symbols);

/// "node 'name' (op)", or "node (op)" where there is no name.
std::string node_location(const OpDef& op, std::string_view name);

}  // namespace tenon
