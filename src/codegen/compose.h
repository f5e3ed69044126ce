#pragma once

#include "codegen/compile.h"

namespace tenon::codegen {

/// A graph as one list of kernels. Throws Error of kind Unsupported, listing every node that no kernel
/// computes.
Program compile_kernels(const Graph& graph, const CompileOptions& options);

/// A value on the way to it, as text.
std::string print_kernels(const Graph& graph, const CompileOptions& options, Stage stage);

/// Whether every node has a kernel and every extent follows from the inputs' extents.
bool is_kernels_alone(const Graph& graph);

/// A graph as a program made of parts: kernels, operators that run as C++ functions, control flow.
Program compose(const Graph& graph, const CompileOptions& options);

}  // namespace tenon::codegen
