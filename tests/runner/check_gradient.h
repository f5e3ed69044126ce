#pragma once

#include "ir/graph.h"
#include "ops/definition/evaluation.h"

#include <string>
#include <vector>

namespace tenon::testing {

/// At a kink, such as that of ReLU at zero, the one-sided slopes differ and finite differences do
/// not approximate the gradient.
enum class Kinks : std::uint8_t { Compared, LeftOut };

/// Compares gradients of a graph's floating outputs, weighted by fixed random numbers, with central
/// finite differences by its f64 inputs. Returns the difference; empty for agreement.
std::string gradient_failure(const Graph& graph, const std::vector<Datum>& inputs,
                             Kinks kinks = Kinks::Compared);

/// The graph with the gradients by its floating inputs as its outputs.
Graph with_gradients(const Graph& graph, const std::vector<Datum>& inputs);

}  // namespace tenon::testing
