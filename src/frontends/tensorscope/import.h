#pragma once

#include "frontends/tensorscope/data_flow.h"
#include "ir/graph.h"

namespace tenon::tensorscope {

/// The step as a graph: variables are seeded constants, feeds and what nothing in the table makes
/// are inputs, fetches are outputs. Throws one Error of kind Unsupported that lists every operator
/// that cannot be imported.
Graph import_graph(const Table& table, const DataFlow& step, std::string_view source);

}  // namespace tenon::tensorscope
