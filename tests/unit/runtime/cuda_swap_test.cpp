// Swapping programs on a device in the unmodified runtime: kernels run in an emulation, and the
// driver is a test library (tests/fixtures/fake_cuda.cpp). Each test's device is in a separate
// process.
#include "base/error.h"
#include "driver/pipeline.h"
#include "driver/targets.h"
#include "ir/text.h"
#include "memory/order.h"
#include "memory/search.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "runtime/cuda/transfers.h"
#include "train/session.h"
#include "unit/codegen/cuda_emulation.h"
#include "unit/codegen/fake_cuda.h"
#include "unit/error_text.h"
#include "unit/memory/plan_checker.h"
#include "unit/runtime/on_device.h"

#include <gtest/gtest.h>

namespace tenon::cuda_swap_test {
namespace {

using testing::are_equal;
using testing::FakeCuda;
using testing::in_own_process;
using testing::OnDevice;

class CudaSwap : public testing::FakeDeviceTest {};

struct Swapping {
  passes::StatefulGraph step = testing::convolutions_step(5, 6);
  Program plain, planned;  // for the device
  std::vector<Tensor> inputs;

  explicit Swapping(bool passes_states_on = false) {
    if (passes_states_on) declare_states(step, false);
    codegen::Compiled compiled = testing::compile_described(step.graph);
    plain = std::move(compiled.program);
    memory::Problem& problem = compiled.step_problem->problem;
    problem = memory::reordered(problem);
    problem.link = memory::Link{"the host's memory", 1e9, 0};
    memory::SearchOptions options;
    options.budget_bytes = plain.arena_bytes * 65 / 100;
    options.may_recompute = false;
    options.may_swap = true;
    options.step_limit = 3000;
    options.place.alignment = 64;
    const memory::SearchResult found = memory::search(problem, options);
    EXPECT_TRUE(found.is_within_budget);
    EXPECT_EQ(testing::fault_in(problem, found.plan), "");
    planned = codegen::apply_plan(plain, *compiled.step_problem, found.plan);
    EXPECT_GE(planned.transfers.size(), 4u);
    EXPECT_LE(planned.arena_bytes, options.budget_bytes);
    plain = testing::for_fake_cuda(std::move(plain));
    planned = testing::for_fake_cuda(std::move(planned));
    inputs = testing::inputs_of(step);
  }
  std::uint64_t swapped_bytes() const {
    std::uint64_t end = 0;
    for (const Program::Transfer& transfer : planned.transfers) {
      std::uint64_t bytes = 4;
      for (const Extent& dim : planned.buffers[transfer.buffer].dims)
        bytes *= static_cast<std::uint64_t>(dim.number());
      end = std::max(end, transfer.file_offset + bytes);
    }
    return end;
  }
};

TEST_F(CudaSwap, AnyPermittedOrderIsBitIdentical) {
  in_own_process([](FakeCuda& device) {
    const Swapping made;
    const std::vector<Tensor> expected = OnDevice(made.plain, made.inputs).run();
    EXPECT_TRUE(are_equal(expected, OnDevice(made.plain, made.inputs).run(true)));
    for (const bool is_early : {false, true}) {
      device.run_copies_early(is_early);
      OnDevice swapping(made.planned, made.inputs);
      EXPECT_TRUE(are_equal(expected, swapping.run())) << "recorded, " << is_early;
      EXPECT_TRUE(are_equal(expected, swapping.run())) << "recorded before, " << is_early;
      EXPECT_TRUE(are_equal(expected, swapping.run(true))) << "step by step, " << is_early;
      EXPECT_TRUE(are_equal(expected, swapping.replayed())) << "run again, " << is_early;
      OnDevice timed_first(made.planned, made.inputs);
      EXPECT_TRUE(are_equal(expected, timed_first.run(true))) << "at first, " << is_early;
    }
  });
}

TEST_F(CudaSwap, ForwardedStatesAreBitIdentical) {
  in_own_process([](FakeCuda& device) {
    const Swapping made(true);
    for (const bool is_early : {false, true}) {
      device.run_copies_early(is_early);
      OnDevice plain(made.plain, made.inputs), swapping(made.planned, made.inputs);
      for (int step = 0; step < 5; ++step)
        EXPECT_TRUE(are_equal(plain.run(), swapping.run())) << "step " << step << ", " << is_early;
    }
  });
}

TEST_F(CudaSwap, DetectsMissingWaits) {
  in_own_process([](FakeCuda& device) {
    const Swapping made;
    const std::vector<Tensor> expected = OnDevice(made.plain, made.inputs).run();
    device.lose(FakeCuda::Lost::WaitsOfSteps);
    EXPECT_FALSE(are_equal(expected, OnDevice(made.planned, made.inputs).run(true)));
    // Every forked stream must join again before the end of capture.
    EXPECT_NE(error_text([&] { OnDevice(made.planned, made.inputs).run(); }).find("UNJOINED"),
              std::string::npos);
    device.lose(FakeCuda::Lost::WaitsOfCopies);
    device.run_copies_early(true);
    EXPECT_FALSE(are_equal(expected, OnDevice(made.planned, made.inputs).run(true)));
    device.lose(FakeCuda::Lost::None);
    EXPECT_TRUE(are_equal(expected, OnDevice(made.planned, made.inputs).run(true)));
  });
}

TEST_F(CudaSwap, AllocatesPinnedMemoryOnce) {
  in_own_process([](FakeCuda& device) {
    const Swapping made;
    {
      OnDevice plain(made.plain, made.inputs);
      EXPECT_EQ(device.pinned_bytes(), 0u);
      OnDevice swapping(made.planned, made.inputs);
      EXPECT_EQ(device.pinned_bytes(), made.swapped_bytes());
      swapping.run();  // inputs and outputs have some too
      const std::size_t held = device.pinned_bytes();
      std::vector<Shape> shapes;
      for (const Tensor& input : made.inputs) shapes.push_back(input.shape());
      swapping.context().bind(shapes);
      swapping.run();
      EXPECT_EQ(device.pinned_allocations(), 3);
      EXPECT_EQ(device.pinned_bytes(), held);
      EXPECT_EQ(swapping.context().runner().pinned_bytes(), held);
    }
    EXPECT_EQ(device.pinned_bytes(), 0u);
    device.limit_pinned_bytes(made.swapped_bytes() - 1);
    const std::string text = error_text([&] { OnDevice(made.planned, made.inputs); });
    EXPECT_NE(text.find("no pinned memory of the host"), std::string::npos) << text;
  });
}

// A session releases its arena during evaluation and adopts a better plan after measuring its
// steps; states are unaffected.
TEST_F(CudaSwap, BudgetedSessionIsBitIdentical) {
  in_own_process([](FakeCuda&) {
    train::SessionOptions options;
    options.thread_count = 1;
    options.target = driver::parse_target("cuda:sm_90a");
    options.compile = [](const Graph& graph, bool) {
      codegen::Compiled made = testing::compile_described(graph);
      made.program = testing::for_fake_cuda(std::move(made.program));
      return made;
    };
    train::Session plain(testing::convolutions_step(3, 6), options);
    options.budget = {"70%", {}, true, 1};
    train::Session within(testing::convolutions_step(3, 6), options);
    EXPECT_LE(within.arena_bytes(), plain.arena_bytes() * 7 / 10);
    Tensor x(DType::F32, {2, 4, 6, 6}), target(DType::I64, {2});
    for (std::int64_t k = 0; k < x.size(); ++k) x.set_real(k, static_cast<double>(k % 7) / 7);
    target.set_integer(0, 1);
    for (int step = 0; step < 5; ++step) {
      const Tensor expected = plain.run({x, target}).front(), got = within.run({x, target}).front();
      EXPECT_TRUE(identical(expected, got)) << "loss of step " << step;
      if (step % 2 == 0) within.rest();
      const train::States a = plain.states(), b = within.states();
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t k = 0; k < a.size(); ++k)
        EXPECT_TRUE(identical(a[k].second, b[k].second)) << a[k].first << " after step " << step;
    }
    EXPECT_TRUE(within.budget()->report().is_measured);
  });
}

TEST_F(CudaSwap, MeasuresTheLink) {
  in_own_process([](FakeCuda&) { EXPECT_GT(cuda::measured_link_bytes_per_s(), 0); });
}

}  // namespace
}  // namespace tenon::cuda_swap_test
