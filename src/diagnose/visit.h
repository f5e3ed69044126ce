#pragma once

#include "host/compiled.h"
#include "ir/graph.h"

#include <functional>
#include <string>

namespace tenon::diagnose {

/// Observer of each value as it is computed: its name and its elements in logical order.
using OnValue = std::function<void(const std::string& name, const Tensor& value)>;

/// Runs a graph in the reference and shows every non-constant value, inputs first; skips values in
/// bodies of control flow.
std::vector<Datum> visit_reference(const Graph& graph, const std::vector<Datum>& inputs,
                                   int threads, const OnValue& on_value);

/// Runs a program and shows every value that its kernels store and its operators compute. `graph`
/// is the compiled graph: values inside a kernel are never stored and cannot be shown.
std::vector<Datum> visit_compiled(CompiledModel& model, const Graph& graph,
                                  const std::vector<Datum>& inputs, const OnValue& on_value);

}  // namespace tenon::diagnose
