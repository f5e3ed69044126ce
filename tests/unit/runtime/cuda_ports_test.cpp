// Transfer of inputs and outputs to and from a device in the unmodified runtime: kernels run in an
// emulation, and the driver is a test library (tests/fixtures/fake_cuda.cpp).
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "runtime/cuda/staging.h"
#include "unit/error_text.h"
#include "unit/runtime/on_device.h"

namespace tenon::cuda_ports_test {
namespace {

using cuda::DeviceMemory;
using cuda::PinnedMemory;
using cuda::Staging;
using testing::are_equal;
using testing::FakeCuda;
using testing::in_own_process;
using testing::OnDevice;

class CudaPorts : public testing::FakeDeviceTest {};

constexpr const char* kTwoSteps = R"(graph two_steps (x: f32[3, 40], b: f32[40]) {
  s = add(x, b)
  y = softmax(s) {axis = -1}
  t = transpose(y) {perm = [1, 0]}
  z = softmax(t) {axis = -1}
  return y, z
}
)";

Program two_steps() {
  return testing::for_fake_cuda(testing::compile_emulated(parse_graph(kTwoSteps, all_ops())));
}

std::vector<Tensor> inputs_with(double first) {
  Tensor x(DType::F32, {3, 40}), b(DType::F32, {40});
  for (std::int64_t k = 0; k < x.size(); ++k)
    x.set_real(k, first + static_cast<double>(k % 11) / 5);
  for (std::int64_t k = 0; k < b.size(); ++k) b.set_real(k, first * static_cast<double>(k % 3));
  return {x, b};
}

std::vector<std::byte> numbered(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t k = 0; k < count; ++k) bytes[k] = static_cast<std::byte>(k * 7 + k / 251);
  return bytes;
}

// To the device and back through rings that are far smaller than the data.
std::vector<std::byte> there_and_back(const std::vector<std::byte>& bytes,
                                      std::uint64_t ring = 256) {
  Staging in(ring, ring / 4), out(ring, ring / 4);
  in.reserve(bytes.size());
  out.reserve(bytes.size());
  DeviceMemory device;
  device.allocate(bytes.size(), "a test");
  in.to_device(device.address(), bytes.data(), bytes.size(), nullptr);
  std::vector<std::byte> back(bytes.size());
  out.to_host(back.data(), device.address(), bytes.size(), nullptr);
  out.finish();
  in.finish();
  return back;
}

TEST_F(CudaPorts, ChunksKeepTheirOrder) {
  in_own_process([](FakeCuda& device) {
    for (const bool is_early : {false, true}) {
      device.run_copies_early(is_early);
      for (const std::size_t count : {1, 63, 64, 65, 256, 1000, 4097})
        EXPECT_EQ(numbered(count), there_and_back(numbered(count))) << count << ", " << is_early;
    }
    EXPECT_EQ(device.pinned_bytes(), 0u);
  });
}

TEST_F(CudaPorts, LargeChunksUseSeveralThreads) {
  in_own_process([](FakeCuda&) {
    const std::vector<std::byte> bytes = numbered((std::size_t{9} << 20) + 3);
    EXPECT_EQ(bytes, there_and_back(bytes, std::uint64_t{2} << 20));
  });
}

TEST_F(CudaPorts, DetectsEarlyReuseOfASlot) {
  in_own_process([](FakeCuda& device) {
    device.lose(FakeCuda::Lost::WaitsOfHost);
    EXPECT_NE(numbered(1000), there_and_back(numbered(1000)));  // in, and out
  });
  // In another process: pending copies would still write to freed memory.
  in_own_process([](FakeCuda&) { EXPECT_EQ(numbered(1000), there_and_back(numbered(1000))); });
}

TEST_F(CudaPorts, ReadsPageableMemoryAtStart) {
  in_own_process([](FakeCuda&) {
    std::vector<Tensor> inputs = inputs_with(0.25);
    OnDevice context(two_steps(), inputs);
    const std::vector<Tensor> expected = context.run();
    std::vector<float> own(inputs[0].as<float>().begin(), inputs[0].as<float>().end());
    context.read_from(0, own.data());
    context.start();
    std::ranges::fill(own, -1.0F);
    EXPECT_TRUE(are_equal(expected, context.finished()));
  });
}

// All started from one thread and finished in another order: each has its own stream and memory.
TEST_F(CudaPorts, ConcurrentContextsMatchSequentialOnes) {
  in_own_process([](FakeCuda& device) {
    constexpr int kContexts = 3;
    std::vector<std::vector<Tensor>> inputs, expected;
    for (int k = 0; k < kContexts; ++k) inputs.push_back(inputs_with(0.5 * k));
    const auto model = std::make_shared<const Executable>(two_steps());
    for (int k = 0; k < kContexts; ++k) expected.push_back(OnDevice(model, inputs[k]).run());
    EXPECT_FALSE(are_equal(expected[0], expected[1]));
    for (const bool is_early : {false, true}) {
      device.run_copies_early(is_early);
      std::vector<std::unique_ptr<OnDevice>> contexts;
      for (int k = 0; k < kContexts; ++k)
        contexts.push_back(std::make_unique<OnDevice>(model, inputs[k]));
      for (int round = 0; round < 3; ++round) {
        for (const auto& context : contexts) context->start();
        for (int k = kContexts - 1; k >= 0; --k)
          EXPECT_TRUE(are_equal(expected[k], contexts[k]->finished())) << k << ", round " << round;
      }
    }
  });
}

// An error report of one binding does not affect another, whose kernels may be free of reports.
TEST_F(CudaPorts, ReportsBelongToTheirBinding) {
  in_own_process([](FakeCuda&) {
    const Graph graph = parse_graph(R"(graph (x: f32[4], i: i64[n]) {
  y = gather(x, i)
  z = relu(x)
  return y, z
}
)",
                                    all_ops());
    Executor context(std::make_shared<const Executable>(
                         testing::for_fake_cuda(testing::compile_emulated(graph))),
                     1);
    std::vector<float> x = {1, -2, 3, -4}, y(2), z(4);
    std::vector<std::int64_t> at = {1, 9};
    const std::vector<const void*> inputs = {x.data(), at.data()};
    const std::vector<void*> outputs = {y.data(), z.data()};
    context.bind(std::vector<Shape>{{4}, {2}});
    EXPECT_THROW(context.run(inputs, outputs), Error);
    context.bind(std::vector<Shape>{{4}, {0}});
    context.run(inputs, outputs);
    EXPECT_EQ(z, (std::vector<float>{1, 0, 3, 0}));
  });
}

TEST_F(CudaPorts, DetectsMissingWaits) {
  in_own_process([](FakeCuda& device) {
    const std::vector<Tensor> inputs = inputs_with(0.5), changed = inputs_with(2);
    const std::vector<Tensor> expected = OnDevice(two_steps(), changed).run();
    OnDevice context(two_steps(), inputs);
    context.run();
    for (std::size_t k = 0; k < changed.size(); ++k)
      context.read_from(k, changed[k].bytes().data());
    device.lose(FakeCuda::Lost::WaitsOfHost);
    context.start();
    EXPECT_FALSE(are_equal(expected, context.finished()));
    device.lose(FakeCuda::Lost::None);
    EXPECT_TRUE(are_equal(expected, context.run()));
    // The caller writes device memory on its default stream, for which the run's stream waits.
    DeviceMemory place;
    place.allocate(changed[0].bytes().size(), "a test");
    context.read_from(0, reinterpret_cast<const void*>(place.address()));
    const auto write = [&](const Tensor& x) {
      const cuda::Driver& cuda = cuda::driver();
      cuda.require(cuda.to_device(place.address(), x.bytes().data(), x.bytes().size(), nullptr),
                   "");
    };
    for (int round = 0; round < 3; ++round) {
      write(changed[0]);
      EXPECT_TRUE(are_equal(expected, context.run())) << round;
      write(inputs[0]);
      EXPECT_FALSE(are_equal(expected, context.run())) << round;
    }
    write(changed[0]);
    device.lose(FakeCuda::Lost::WaitsOfSteps);
    EXPECT_FALSE(are_equal(expected, context.run()));
  });
}

TEST_F(CudaPorts, CopiesPinnedMemoryDirectly) {
  in_own_process([](FakeCuda& device) {
    const std::vector<Tensor> inputs = inputs_with(1);
    OnDevice context(two_steps(), inputs);
    std::vector<std::unique_ptr<PinnedMemory>> pinned;
    const auto new_place = [&](std::size_t bytes) {
      pinned.push_back(std::make_unique<PinnedMemory>());
      pinned.back()->allocate(bytes, "a test");
      return pinned.back()->data();
    };
    std::vector<const void*> sources;
    for (const Tensor& input : inputs) {
      std::byte* const place = new_place(input.bytes().size());
      std::ranges::copy(input.bytes(), place);
      sources.push_back(place);
    }
    std::vector<Tensor> made = context.places();
    std::vector<void*> targets;
    for (const Tensor& output : made) targets.push_back(new_place(output.bytes().size()));
    context.context().run(sources, targets);
    for (std::size_t k = 0; k < made.size(); ++k)
      std::copy_n(static_cast<const std::byte*>(targets[k]), made[k].bytes().size(),
                  made[k].mutable_bytes().data());
    // The runtime itself pinned only the number that kernels report.
    EXPECT_EQ(context.context().runner().pinned_bytes(), Staging::room(8));
    EXPECT_TRUE(are_equal(made, context.run()));
    EXPECT_GT(context.context().runner().pinned_bytes(), Staging::room(8));
    const int before = device.pinned_allocations();
    context.run();
    EXPECT_EQ(device.pinned_allocations(), before);
  });
}

TEST_F(CudaPorts, RunsWithoutPinnedMemory) {
  in_own_process([](FakeCuda& device) {
    const std::vector<Tensor> inputs = inputs_with(1);
    const std::vector<Tensor> expected = OnDevice(two_steps(), inputs).run();
    device.limit_pinned_bytes(0);
    OnDevice context(two_steps(), inputs);
    EXPECT_TRUE(are_equal(expected, context.run()));
    context.start();
    EXPECT_TRUE(are_equal(expected, context.finished()));
    EXPECT_EQ(context.context().runner().pinned_bytes(), 0u);
  });
}

TEST_F(CudaPorts, RefusesASecondRunInFlight) {
  in_own_process([](FakeCuda&) {
    const std::vector<Tensor> inputs = inputs_with(1);
    OnDevice context(two_steps(), inputs);
    const std::vector<Tensor> expected = context.run();
    EXPECT_EQ(error_text([&] { context.finished(); }), "no run of the context was started");
    context.start();
    for (const auto& ask : std::vector<std::function<void()>>{
             [&] { context.run(); }, [&] { context.context().replay(); },
             [&] { context.context().start({}, {}); }}) {
      EXPECT_NE(error_text(ask).find("a run of the context is in progress"), std::string::npos);
    }
    EXPECT_TRUE(are_equal(expected, context.finished()));
    context.start();  // destroyed with a run in flight
  });
}

TEST_F(CudaPorts, OutOfMemoryNamesTheStep) {
  in_own_process([](FakeCuda& device) {
    device.limit_device_bytes(256);
    const std::string text = error_text([] { OnDevice(two_steps(), inputs_with(1)); });
    EXPECT_NE(text.find("no memory for the values between steps"), std::string::npos) << text;
    EXPECT_NE(text.find("step "), std::string::npos) << text;
    EXPECT_NE(text.find("free of"), std::string::npos) << text;
  });
}

TEST_F(CudaPorts, DeviceFailureNamesTheStep) {
  in_own_process([](FakeCuda& device) {
    const Program program = two_steps();
    const std::string symbol = program.kernels[program.steps.back().kernel].symbol;
    const std::string step = concat("step ", program.steps.size() - 1, " ('");
    const std::string all = concat("step 0 ('", program.steps.front().name, "') to ", step);
    const auto text_of_run = [&] {
      return error_text([&] { OnDevice(program, inputs_with(1)).run(); });
    };
    device.fail(symbol, FakeCuda::Failure::AtLaunch);
    std::string text = text_of_run();
    EXPECT_NE(text.find(concat("at        ", step)), std::string::npos) << text;
    device.fail(symbol, FakeCuda::Failure::WhenItRuns);
    text = text_of_run();
    EXPECT_NE(text.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << text;
    EXPECT_NE(text.find(all), std::string::npos) << text;
    setenv("TENON_GPU_STEPWISE", "1", 1);
    device.fail(symbol, FakeCuda::Failure::WhenItRuns);
    text = text_of_run();
    EXPECT_NE(text.find(concat("at        ", step)), std::string::npos) << text;
    device.fail("", FakeCuda::Failure::WhenItRuns);
    EXPECT_EQ(text_of_run(), "no error");
    unsetenv("TENON_GPU_STEPWISE");
  });
}

}  // namespace
}  // namespace tenon::cuda_ports_test
