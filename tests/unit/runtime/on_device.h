#pragma once

#include "host/program_types.h"
#include "ops/definition/evaluation.h"
#include "runtime/executor.h"
#include "runtime/kernel_runner.h"
#include "unit/codegen/cuda_emulation.h"
#include "unit/codegen/fake_cuda.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

namespace tenon::testing {

/// A program on the device, with its inputs; runs pass its states on, which start with their
/// inputs.
class OnDevice {
 public:
  OnDevice(const Program& program, const std::vector<Tensor>& inputs)
      : OnDevice(std::make_shared<const Executable>(program), inputs) {}
  OnDevice(std::shared_ptr<const Executable> executable, const std::vector<Tensor>& inputs)
      : executable_(std::move(executable)), context_(executable_, 1) {
    const std::vector<Program::State>& states = executable_->program().states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      const Tensor& value = inputs[states[k].input];
      context_.write_state(k, value.shape(), value.bytes().data());
    }
    std::vector<Shape> shapes;
    for (const Tensor& input : inputs) {
      shapes.push_back(input.shape());
      sources_.push_back(input.bytes().data());
    }
    context_.bind(shapes);
  }
  Executor& context() { return context_; }
  std::vector<Tensor> run(bool is_timed = false) {
    std::vector<Tensor> outputs = places();
    RunEvents events;
    Observers observers;
    if (is_timed) observers.events = &events;
    context_.run(sources_, targets_of(outputs), observers);
    const std::vector<Program::State>& states = executable_->program().states;
    for (std::size_t k = 0; k < states.size(); ++k)
      context_.read_state(k, outputs[states[k].output].mutable_bytes().data());
    return outputs;
  }
  /// Starts a run; outputs are valid after `finish`.
  void start() {
    started_ = places();
    context_.start(sources_, targets_of(started_));
  }
  std::vector<Tensor> finished() {
    context_.finish();
    return std::move(started_);
  }
  std::vector<Tensor> replayed() {
    context_.replay();
    std::vector<Tensor> outputs = places();
    for (std::size_t k = 0; k < outputs.size(); ++k)
      context_.runner().device()->fetch_output(k, outputs[k].mutable_bytes().data());
    return outputs;
  }
  /// Later runs read an input from another address.
  void read_from(std::size_t input, const void* place) { sources_[input] = place; }
  std::vector<Tensor> places() const {
    std::vector<Tensor> outputs;
    const Program& program = executable_->program();
    for (std::size_t k = 0; k < program.outputs.size(); ++k)
      outputs.emplace_back(element_type_of(program.buffers[program.outputs[k]]),
                           context_.output_shape(k));
    return outputs;
  }
  const std::vector<const void*>& sources() const { return sources_; }

 private:
  static std::vector<void*> targets_of(std::vector<Tensor>& outputs) {
    std::vector<void*> targets;
    for (Tensor& output : outputs) targets.push_back(output.mutable_bytes().data());
    return targets;
  }

  std::shared_ptr<const Executable> executable_;
  Executor context_;
  std::vector<const void*> sources_;
  std::vector<Tensor> started_;
};

inline bool are_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return identical(x, y); });
}

/// Fixture whose child processes share a cache of compiled kernels.
class FakeDeviceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::getenv(kKernelFolder) != nullptr) return;
    setenv(kKernelFolder, new_library_path("").c_str(), 1);
    is_first_ = true;
  }
  static void TearDownTestSuite() {
    if (is_first_) unsetenv(kKernelFolder);
  }
  static inline bool is_first_ = false;
};

/// Runs the body in a child process with the fake driver, and forwards its failures.
inline void in_own_process(const std::function<void(FakeCuda&)>& body) {
  if (!has_compiler()) GTEST_SKIP() << kNeedsCompiler;
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        FakeCuda device;
        body(device);
        std::fflush(nullptr);
        _exit(::testing::Test::HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace tenon::testing
