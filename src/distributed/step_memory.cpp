#include "distributed/step_memory.h"

#include "base/error.h"
#include "driver/compile.h"
#include "host/compiled.h"
#include "ops/definition/var_ops.h"
#include "runtime/cuda/describe.h"
#include "runtime/cuda/driver.h"
#include "runtime/cuda/nccl.h"
#include "tenon/builder.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace tenon::distributed {
namespace {

constexpr std::size_t kTermsAtOnce = 8;

// x0 + x1 + …, of any length.
Graph sum_graph(DType dtype, std::size_t terms) {
  Builder build("sum_over_ranks");
  const auto input = [&](std::size_t k) {
    return build.input(concat("x", k), concat(dtype, "[N]"));
  };
  Var sum = input(0);
  for (std::size_t k = 1; k < terms; ++k) sum = sum + input(k);
  build.output(sum, "y");
  return build.take();
}

// Copies use a separate stream and have completed when a call returns.
class CudaMemory : public DeviceRankMemory {
 public:
  explicit CudaMemory(StepMemory place)
      : DeviceRankMemory(std::move(place)), lane_(cuda::device_lane()) {}

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    auto memory = std::make_shared<cuda::DeviceMemory>();
    memory->allocate(std::max<std::size_t>(bytes, 256), "what ranks exchange");
    const cuda::Driver& cuda = cuda::driver();
    cuda.require(cuda.fill(memory->address(), 0, memory->bytes(), lane_.stream), "clearing memory");
    lane_.wait();
    return {memory, reinterpret_cast<std::byte*>(memory->address())};
  }

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (bytes == 0 || to == from) return;
    const cuda::Driver& cuda = cuda::driver();
    const auto target = reinterpret_cast<cuda::Address>(to);
    const auto source = reinterpret_cast<cuda::Address>(from);
    const bool is_to = cuda.is_on_device(to), is_from = cuda.is_on_device(from);
    if (!is_to && !is_from) return host_memory().copy(to, from, bytes);
    cuda.require(is_to && is_from ? cuda.copy(target, source, bytes, lane_.stream)
                 : is_to          ? cuda.to_device(target, from, bytes, lane_.stream)
                                  : cuda.to_host(to, source, bytes, lane_.stream),
                 "copying what ranks exchange");
    lane_.wait();
  }

 private:
  cuda::NcclRanks::Lane lane_;
};

// The only rank, whose messages to itself are copies.
class AloneOnDevice : public Communicator {
 public:
  explicit AloneOnDevice(std::shared_ptr<RankMemory> memory) : memory_(std::move(memory)) {}
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void exchange(std::span<const std::span<const std::byte>> given,
                std::span<const std::span<std::byte>> taken) override {
    memory_->copy(taken[0].data(), given[0].data(), taken[0].size());
  }

 private:
  std::shared_ptr<RankMemory> memory_;
};

}  // namespace

std::shared_ptr<const Executable> StepMemory::load(Program program) const {
  return std::make_shared<const Executable>(
      std::move(program), make_device != nullptr ? make_device : load_on_device, load_operators);
}

struct DeviceRankMemory::Sums {
  StepMemory place;
  // by number of terms
  std::map<std::pair<DType, std::size_t>, std::shared_ptr<const Executable>> models;
  // by number of terms and elements
  std::map<std::tuple<DType, std::size_t, std::int64_t>, Executor> contexts;

  Executor& context(DType dtype, std::size_t terms, std::int64_t count) {
    const auto found = contexts.find({dtype, terms, count});
    if (found != contexts.end()) return found->second;
    std::shared_ptr<const Executable>& model = models[{dtype, terms}];
    if (!model) model = place.load(place.compile(sum_graph(dtype, terms)));
    Executor& made =
        contexts.emplace(std::tuple(dtype, terms, count), Executor(model, 1)).first->second;
    made.bind(std::vector<Shape>(terms, Shape{count}));
    return made;
  }
};

DeviceRankMemory::DeviceRankMemory(StepMemory place)
    : sums_(std::make_unique<Sums>(Sums{std::move(place), {}, {}})) {}
DeviceRankMemory::~DeviceRankMemory() = default;

// Adds a limited number of terms per kernel; the partial sum is the first term of the next one.
void DeviceRankMemory::add_in_order(DType dtype, std::span<std::byte> y,
                                    std::span<const std::span<const std::byte>> terms) {
  if (y.empty()) return;
  if (terms.size() == 1) return copy(y.data(), terms[0].data(), y.size());
  const auto count =
      static_cast<std::int64_t>(y.size() / static_cast<std::size_t>(info(dtype).storage_bytes));
  std::shared_ptr<std::byte> before;
  std::size_t done = 0;
  while (done < terms.size()) {
    std::vector<const void*> sources;
    if (done > 0) {
      if (!before) before = allocate(y.size());
      copy(before.get(), y.data(), y.size());
      sources.push_back(before.get());
    }
    while (sources.size() < kTermsAtOnce && done < terms.size())
      sources.push_back(terms[done++].data());
    void* target = y.data();
    sums_->context(dtype, sources.size(), count).run(sources, std::span(&target, 1));
  }
}

namespace {

// Host memory that ranks of one machine make visible to each other.
class VisibleHostMemory : public RankMemory {
 public:
  explicit VisibleHostMemory(Communicator& ranks) : ranks_(ranks) {}
  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    return host_memory().allocate(bytes);
  }
  std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) override {
    std::shared_ptr<std::byte> memory = ranks_.allocate_visible(bytes);
    return memory ? memory : allocate(bytes);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    host_memory().copy(to, from, bytes);
  }
  void add_in_order(DType dtype, std::span<std::byte> y,
                    std::span<const std::span<const std::byte>> terms) override {
    host_memory().add_in_order(dtype, y, terms);
  }

 private:
  Communicator& ranks_;
};

}  // namespace

StepMemory host_step_memory(Communicator& ranks) {
  StepMemory place;
  place.compile = [](Graph graph) { return driver::compile_graph(std::move(graph)); };
  place.memory = std::make_shared<VisibleHostMemory>(ranks);
  place.ranks = {std::shared_ptr<void>(), &ranks};
  return place;
}

StepMemory cuda_step_memory(Communicator& ranks, bool is_rank, const TargetSpec& target) {
  StepMemory place;
  place.is_device = true;
  place.compile = [target](Graph graph) {
    driver::CompileRequest request;
    request.target = target;
    request.is_untuned = true;
    return driver::compile_model(std::move(graph), request).program;
  };
  place.memory = std::make_shared<CudaMemory>(place);
  if (!is_rank) {
    place.ranks = std::make_shared<AloneOnDevice>(place.memory);
    return place;
  }
  auto nccl =
      std::make_shared<cuda::NcclRanks>(ranks, std::make_unique<cuda::Nccl>(), cuda::device_lane());
  place.words = concat("NCCL ", nccl->version(), " on ", cuda::device_name());
  place.ranks = std::move(nccl);
  return place;
}

}  // namespace tenon::distributed
