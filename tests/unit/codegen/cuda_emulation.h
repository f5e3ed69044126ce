#pragma once

#include "codegen/compile.h"
#include "ir/graph.h"
#include "ops/evaluation.h"
#include "runtime/device.h"

#include <memory>
#include <optional>
#include <vector>

namespace tenon::testing {

/// Whether there is a C++ compiler to run what was written for a device.
bool has_compiler();

/// The program of a graph, as its nodes stand, for a device that is emulated on the processor; and
/// that device, whose memory is the processor's.
Program compile_emulated(const Graph& graph,
                         std::optional<codegen::StepProblem>* described = nullptr);
std::shared_ptr<const DeviceExecutable> emulate(const Program& program);

/// Compiles a graph for a device that is emulated on the processor, as its nodes stand, and runs
/// it.
std::vector<Tensor> run_emulated(const Graph& graph, const std::vector<Tensor>& inputs);
std::vector<Tensor> run_emulated(Program program, const std::vector<Tensor>& inputs);

}  // namespace tenon::testing
