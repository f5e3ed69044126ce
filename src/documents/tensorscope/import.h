#pragma once

#include "documents/tensorscope/data_flow.h"
#include "ir/graph.h"

namespace tenon::documents::tensorscope {

/// Imports the step: variables are seeded constants, feeds and values without a producer are
/// inputs, fetches are outputs. Throws one Error of kind Unsupported that lists every operator that
/// cannot be imported.
Graph import_graph(const TensorScopeTable& table, const DataFlow& step, std::string_view source);

}  // namespace tenon::documents::tensorscope
