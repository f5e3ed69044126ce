#pragma once

#include "ir/graph.h"
#include "ops/evaluation.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// Where a function bends, as a ReLU does at zero, the slopes to both sides differ and neither is
/// the gradient.
enum class Kinks : std::uint8_t { Compared, LeftOut };

/// How the gradient of a graph's floating outputs, weighted by fixed random numbers, by its
/// floating inputs differs from central finite differences; empty if it does not. Inputs of f64 are
/// asked for.
std::string gradient_failure(const Graph& graph, const std::vector<Datum>& inputs,
                             Kinks kinks = Kinks::Compared);

/// The graph with the gradients by its floating inputs as its outputs.
Graph with_gradients(const Graph& graph, const std::vector<Datum>& inputs);

}  // namespace tenon::testing
