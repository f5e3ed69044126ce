#pragma once

#include <string>
#include <vector>

#include "codegen/cpu/emit.h"
#include "ir/graph.h"
#include "program/program.h"

namespace tenon::codegen {

struct CompileOptions {
  cpu::Target target;
  bool allow_winograd = true;  ///< faster convolutions whose rounding errors are larger
};

/// A graph as a program for the processor: one list of kernels, or parts where some nodes have none.
/// Throws Error of kind Unsupported, listing every node that can be neither.
Program compile(const Graph& graph, const CompileOptions& options = {});

/// The loop nests, code and assembly that would be made of a graph, to be read.
std::string print_code(const Graph& graph, const CompileOptions& options = {});

/// What each node of a graph computes, a fused group as one: by result, over the node's operands.
std::vector<Expr> node_exprs(const Graph& graph, NodeId node);

}  // namespace tenon::codegen
