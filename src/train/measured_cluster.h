#pragma once

#include "distributed/step_plan.h"

namespace tenon::train {

/// Returns a model of this machine as a cluster of ranks with that many threads each: its cores,
/// which ranks share if there are more, and the measured cost of exchanges.
distributed::Cluster cluster_here(int thread_count);

/// Calibrates the costs on this machine: times the compiled stages of the step, and whole training
/// steps with data loading, on one rank and, if there are cores for them, on two.
distributed::StepCosts measured(distributed::StepCosts costs, const Graph& model,
                                const passes::TrainOptions& options, std::int64_t batch,
                                const distributed::Cluster& here, int thread_count);

}  // namespace tenon::train
