#pragma once

#include "codegen/compile.h"
#include "driver/compile.h"
#include "tune/cache.h"

#include <functional>
#include <string>
#include <vector>

namespace tenon::cli {

/// Runs the standard passes and compiles the graph, with the fastest kernels of the user's tuning
/// cache; tunes unknown kernels first if requested. Reports an unusable cache on stderr and ignores
/// it. Ctrl-C ends the tuning, not the compilation.
driver::CompileRecord compile_tuned(Graph graph, driver::CompileRequest request);

/// Returns the text of an intermediate representation of the compilation.
std::string print_tuned(Graph graph, driver::CompileRequest request, codegen::CompileStage stage);

/// Returns the choice for each kernel.
std::vector<codegen::Decision> decide_tuned(Graph graph, driver::CompileRequest request);

/// Returns options with these choices, from the cache.
codegen::CompileOptions options_tuned(const Graph& graph, driver::CompileRequest request);

/// Tunes the kernels of a graph without running passes. Returns a summary.
std::string tune_graph(const Graph& graph, driver::CompileRequest request);

/// Adds the callbacks of a terminal to a request: notices, progress and the summary of tuning on
/// stderr. Ctrl-C ends the tuning.
driver::CompileRequest on_terminal(driver::CompileRequest request);

}  // namespace tenon::cli
