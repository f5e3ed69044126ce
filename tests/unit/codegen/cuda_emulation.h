#pragma once

#include "codegen/compile.h"
#include "codegen/cuda/cuda_target.h"
#include "ir/graph.h"
#include "ops/definition/evaluation.h"
#include "passes/train/train.h"
#include "runtime/device.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace tenon::testing {

/// Returns whether a C++ compiler for emulated kernels is installed.
bool has_compiler();

/// Environment variable with the folder of emulated kernels, for child processes.
inline constexpr const char* kKernelFolder = "TENON_EMULATED_KERNELS";
/// Compiles a library with the compiler arguments `what` and puts it into place atomically: other
/// processes may compile the same one.
void compile_library(const std::string& what, const std::string& library);
/// Returns a path for a library of that name in a folder that is removed at exit.
std::string new_library_path(const std::string& name);
/// Returns the path of the library of a program's emulated kernels.
std::string compiled_kernels(const std::string& code);

/// Reason with which tests of emulated kernels are skipped.
inline constexpr const char* kNeedsCompiler = "needs a C++ compiler that builds emulated kernels";

/// Fixture of tests that run emulated kernels; skipped without a C++ compiler.
class EmulatedDeviceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_compiler()) GTEST_SKIP() << kNeedsCompiler;
  }
};

codegen::cuda::CudaTarget emulated_target();
/// Compiles a graph without passes for an emulated device, whose memory is the host's.
Program compile_emulated(const Graph& graph);
/// With the memory-planning problem.
codegen::Compiled compile_described(const Graph& graph);
std::shared_ptr<const DeviceExecutable> emulate(const Program& program);

/// A training step (momentum) of a convolutional network over two images of `extent`², after the
/// passes for a device, with its initial states.
passes::StatefulGraph convolutions_step(int layers, int extent);
std::vector<Tensor> inputs_of(const passes::StatefulGraph& step);

/// Compiles a graph without passes for the emulated device and runs it.
std::vector<Tensor> run_emulated(const Graph& graph, const std::vector<Tensor>& inputs);
std::vector<Tensor> run_emulated(Program program, const std::vector<Tensor>& inputs);

/// Expects the reference's results up to the rounding of sums.
void expect_as_reference(const Graph& graph, const std::vector<Datum>& inputs,
                         const std::string& what);
void expect_as_reference(Program program, const Graph& graph, const std::vector<Datum>& inputs,
                         const std::string& what);

}  // namespace tenon::testing
