// Data-parallel training on devices, emulated: kernels run in an emulation, and messages go through
// a library with NCCL's interface (tests/fixtures/fake_nccl.cpp).
#include "base/lockstep.h"
#include "distributed/distributed_step.h"
#include "ir/text.h"
#include "ops/definition/registry.h"
#include "passes/train/train.h"
#include "runtime/cuda/nccl.h"
#include "train/trainer.h"
#include "unit/codegen/cuda_emulation.h"
#include "unit/error_text.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModel = R"(graph net (x: f32[N, 5]) {
  w1 = constant f32[5, 7] normal(seed = 1, mean = 0.0, deviation = 0.3)
  b1 = constant f32[7] splat 0.0
  w2 = constant f32[7, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
  a = matmul(x, w1)
  b = add(a, b1)
  c = tanh(b)
  logits = matmul(c, w2)
  return logits
})";

class FakeNccl : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!testing::has_compiler()) return;
    folder_ = fs::path(::testing::TempDir()) / ("tenon_nccl_" + std::to_string(getpid()));
    fs::create_directories(folder_);
    library_ = (folder_ / "libnccl.so.2").string();
    const std::string command =
        "c++ -std=c++17 -shared -fPIC tests/fixtures/fake_nccl.cpp -o " + library_;
    if (std::system(command.c_str()) != 0) library_.clear();
  }
  static void TearDownTestSuite() { fs::remove_all(folder_); }
  void SetUp() override {
    if (!testing::has_compiler()) GTEST_SKIP() << testing::kNeedsCompiler;
    ASSERT_FALSE(library_.empty()) << "the library does not compile";
  }
  static std::shared_ptr<cuda::NcclRanks> ranks_like(Communicator& control) {
    return std::make_shared<cuda::NcclRanks>(control, std::make_unique<cuda::Nccl>(library_),
                                             cuda::NcclRanks::Lane{nullptr, [] {}, [] {}, nullptr});
  }
  static long message_count() {
    void* library = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto count = reinterpret_cast<long (*)()>(dlsym(library, "fakeNcclMessages"));
    return count();
  }

  static inline fs::path folder_;
  static inline std::string library_;
};

// The emulated device shares the processor's memory.
class EmulatedMemory : public distributed::DeviceRankMemory {
 public:
  using DeviceRankMemory::DeviceRankMemory;
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    return host_memory().allocate(bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    host_memory().copy(to, from, bytes);
  }
};

distributed::StepMemory emulated_place(std::shared_ptr<Communicator> ranks) {
  distributed::StepMemory place;
  place.is_device = true;
  place.compile = [](Graph graph) { return testing::compile_emulated(graph); };
  place.make_device = testing::emulate;
  place.memory = std::make_shared<EmulatedMemory>(place);
  place.ranks = std::move(ranks);
  return place;
}

// Returns the states after two training steps on a batch of 12 in `micro_batches` micro-batches.
std::vector<Tensor> trained(Communicator& control, std::shared_ptr<Communicator> ranks,
                            std::int64_t micro_batches, std::int64_t state_ranks) {
  passes::TrainOptions train;
  train.optimizer.kind = "momentum";
  train.micro_batches = micro_batches;
  train.state_ranks = state_ranks;
  train.fewest_split = 1;
  const passes::StatefulGraph step = tenon::passes::train(
      train::with_batch(parse_graph(kModel, all_ops()), 12 / micro_batches), train);
  distributed::DistributedStep ranked(step, control, {micro_batches, 1, 64, 1},
                                      emulated_place(std::move(ranks)));
  std::vector<Tensor> now, next;
  for (const passes::State& state : step.states) {
    const Tensor whole = state.initial.materialise();
    Tensor mine(whole.dtype(),
                constants(step.graph.value(step.graph.inputs()[state.input]).type.tensor().dims));
    const std::size_t begin =
        state.split ? mine.byte_size() * static_cast<std::size_t>(control.rank()) : 0;
    if (begin < whole.byte_size())
      std::memcpy(mine.mutable_bytes().data(), whole.bytes().data() + begin,
                  std::min(mine.byte_size(), whole.byte_size() - begin));
    now.push_back(mine);
    next.emplace_back(mine.dtype(), mine.shape());
  }
  for (int number = 0; number < 2; ++number) {
    std::vector<std::vector<Tensor>> given;
    for (std::int64_t part = control.rank(); part < micro_batches; part += control.size()) {
      Tensor x(DType::F32, {12 / micro_batches, 5}), target(DType::I64, {12 / micro_batches});
      for (std::int64_t k = 0; k < x.size(); ++k)
        x.set_real(k, 0.1 * static_cast<double>((part * x.size() + k + number) % 17) - 0.8);
      for (std::int64_t k = 0; k < target.size(); ++k)
        target.set_integer(k, (part * target.size() + k) % 3);
      given.push_back({x, target});
    }
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (std::size_t k = 0; k < now.size(); ++k) {
      from.push_back(now[k].bytes().data());
      to.push_back(next[k].mutable_bytes().data());
    }
    ranked.run(given, from, to, number);
    now.swap(next);
  }
  std::vector<Tensor> whole;
  for (std::size_t k = 0; k < now.size(); ++k) {
    if (!step.states[k].split) whole.push_back(now[k]);
  }
  return whole;
}

TEST_F(FakeNccl, SendsMessagesAndGathers) {
  run_in_lockstep(3, [&](Communicator& control) {
    const auto ranks = ranks_like(control);
    EXPECT_EQ(ranks->version(), "2.99.1");
    const std::vector<std::string> texts = ranks->all_gather(std::string(
        static_cast<std::size_t>(control.rank() + 1), static_cast<char>('a' + control.rank())));
    EXPECT_EQ(texts, (std::vector<std::string>{"a", "bb", "ccc"}));
    // In rank order, as ncclAllGather.
    std::vector<std::byte> mine(5, static_cast<std::byte>(control.rank())), all(15);
    std::vector<std::span<std::byte>> places;
    for (std::size_t k = 0; k < 3; ++k) places.push_back(std::span(all).subspan(5 * k, 5));
    ranks->all_gather(mine, places);
    for (std::size_t k = 0; k < 15; ++k) EXPECT_EQ(all[k], static_cast<std::byte>(k / 5));
  });
}

// One rank per part; a single rank uses the library as well.
TEST_F(FakeNccl, DeviceStepsMatchOneRank) {
  const auto alone = one_rank();
  const long before = message_count();
  const std::vector<Tensor> expected = trained(*alone, ranks_like(*alone), 3, 1);
  EXPECT_GT(message_count(), before);
  for (const auto& [size, state_ranks] : {std::pair(3, 1), std::pair(3, 3)}) {
    std::mutex mutex;
    run_in_lockstep(size, [&, split = state_ranks](Communicator& control) {
      const std::vector<Tensor> got = trained(control, ranks_like(control), 3, split);
      const std::scoped_lock lock(mutex);
      std::size_t same = 0;
      for (const Tensor& tensor : got) {
        same += static_cast<std::size_t>(std::ranges::any_of(
            expected, [&](const Tensor& other) { return identical(tensor, other); }));
      }
      EXPECT_EQ(same, got.size()) << "split over " << split;
    });
  }
}

// More terms than one kernel takes, in their order.
TEST_F(FakeNccl, DeviceSumsAreOrdered) {
  distributed::StepMemory place = emulated_place(nullptr);
  std::vector<Tensor> terms;
  std::vector<std::span<const std::byte>> given;
  for (int k = 0; k < 19; ++k) {
    Tensor& term = terms.emplace_back(DType::F32, Shape{37});
    for (std::int64_t i = 0; i < term.size(); ++i)
      term.set_real(i, std::ldexp(1.0 + 0.01 * static_cast<double>(i), (k * 7) % 30));
  }
  for (const Tensor& term : terms) given.push_back(term.bytes());
  Tensor on_device(DType::F32, {37}), on_host(DType::F32, {37});
  place.memory->add_in_order(DType::F32, on_device.mutable_bytes(), given);
  host_memory().add_in_order(DType::F32, on_host.mutable_bytes(), given);
  EXPECT_TRUE(identical(on_device, on_host));
}

TEST(Nccl, ReportsTheMissingLibrary) {
  EXPECT_EQ(error_text([] { cuda::Nccl("libno_such_nccl.so.2"); }),
            "no library for messages between NVIDIA GPUs (NCCL)\n"
            "  expected  libno_such_nccl.so.2\n"
            "  hint      install it, or name its folder in LD_LIBRARY_PATH or its toolkit in "
            "CUDA_HOME");
}

}  // namespace
}  // namespace tenon
