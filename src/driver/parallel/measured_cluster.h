#pragma once

#include "driver/parallel/step_plan.h"

namespace tenon {

/// Ranks on this machine, so many threads each: its cores, which ranks share where there are more,
/// and what exchanging takes of them, measured now.
Cluster cluster_here(int thread_count);

/// The same costs with the times that the compiled stages of the step take here, measured now.
StepCosts measured(StepCosts costs, const Graph& model, TrainOptions options, int thread_count);

}  // namespace tenon
