#pragma once

#include "driver/parallel/step_plan.h"

namespace tenon {

/// Ranks on this machine, so many threads each: its cores, which ranks share where there are more,
/// and what exchanging takes of them, measured now.
Cluster cluster_here(int thread_count);

/// The same costs with what this machine takes, measured now: the compiled stages of the step, and
/// whole steps of training, data and all, on one rank and, where there are cores for them, on two.
StepCosts measured(StepCosts costs, const Graph& model, const TrainOptions& options,
                   std::int64_t batch, const Cluster& here, int thread_count);

}  // namespace tenon
