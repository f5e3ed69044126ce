#pragma once

#include "codegen/compile.h"
#include "codegen/cuda/select.h"
#include "ir/graph.h"
#include "ops/evaluation.h"
#include "passes/train/train.h"
#include "runtime/device.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace tenon::testing {

/// Whether there is a C++ compiler to run what was written for a device.
bool has_compiler();

/// Names the folder of emulated kernels for processes that this one starts.
inline constexpr const char* kKernelFolder = "TENON_EMULATED_KERNELS";
/// Compiles a library from what the compiler is told, in one piece: others may do so too.
void compile_library(const std::string& what, const std::string& library);
/// Where a library of that name can be written; it goes when the process does.
std::string new_library_path(const std::string& name);
/// The library of a program's emulated kernels.
std::string compiled_kernels(const std::string& code);

/// Reason with which tests of emulated kernels are skipped.
inline constexpr const char* kNeedsCompiler = "needs a C++ compiler that builds emulated kernels";

/// Tests that run kernels of an emulated device; skipped without a C++ compiler.
class EmulatedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_compiler()) GTEST_SKIP() << kNeedsCompiler;
  }
};

codegen::cuda::Target emulated_target();
/// The program of a graph, as its nodes stand, for a device that is emulated on the processor; and
/// that device, whose memory is the processor's.
Program compile_emulated(const Graph& graph,
                         std::optional<codegen::StepProblem>* described = nullptr);
std::shared_ptr<const DeviceExecutable> emulate(const Program& program);

/// A step of training (momentum) of some convolutions over two images of that height and width,
/// after the passes for a device; and what it takes, states at their first values.
StatefulGraph convolutions_step(int layers, int extent);
std::vector<Tensor> inputs_of(const StatefulGraph& step);

/// Compiles a graph for a device that is emulated on the processor, as its nodes stand, and runs
/// it.
std::vector<Tensor> run_emulated(const Graph& graph, const std::vector<Tensor>& inputs);
std::vector<Tensor> run_emulated(Program program, const std::vector<Tensor>& inputs);

/// Whether it then gives what the reference does, but for how sums are rounded.
void expect_as_reference(const Graph& graph, const std::vector<Datum>& inputs,
                         const std::string& what);
void expect_as_reference(Program program, const Graph& graph, const std::vector<Datum>& inputs,
                         const std::string& what);

}  // namespace tenon::testing
