#pragma once

#include "driver/compiled.h"
#include "ir/graph.h"

#include <functional>
#include <string>

namespace tenon {

/// Called with each value as it is made: its name, and what it is, in the order of elements that it
/// has without a layout.
using OnValue = std::function<void(const std::string& name, const Tensor& value)>;

/// Runs a graph by definition and shows every value that is no constant, inputs first; those in
/// bodies of control flow are not shown.
std::vector<Datum> visit_reference(const Graph& graph, const std::vector<Datum>& inputs,
                                   int threads, const OnValue& on_value);

/// Runs a program and shows every value that its kernels store and its operators make. `graph` is
/// what it was compiled from: values inside of a kernel are nowhere to be seen.
std::vector<Datum> visit_compiled(CompiledModel& model, const Graph& graph,
                                  const std::vector<Datum>& inputs, const OnValue& on_value);

}  // namespace tenon
