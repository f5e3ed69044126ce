#include "train/measured_cluster.h"

#include "base/lockstep.h"
#include "distributed/stage_program.h"
#include "distributed/stages.h"
#include "ops/families/rank_sum.h"
#include "profile/machine_peak.h"
#include "runtime/processors.h"
#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace tenon::train {
namespace {

constexpr int kRuns = 4;  // the first run touches cold memory
constexpr std::int64_t kMostRanks = 64;
// Limits of a timed training run.
constexpr std::int64_t kMostSteps = 200;
constexpr int kFewestSteps = 4;
constexpr double kLongest_s = 1.5;

template <class Call>
double least_seconds(Call call) {
  double least = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count());
  }
  return least;
}

// Measures the exchange rate of two ranks that are threads: bytes sent by one of them during a sum
// that both receive.
double bytes_exchanged_per_s() {
  constexpr std::size_t kCount = std::size_t{4} << 20;
  std::vector<double> seconds(2);
  run_in_lockstep(2, [&](Communicator& ranks) {
    RankSum sum(ranks, DType::F32, kCount);
    const std::shared_ptr<std::byte> memory = host_memory().allocate(kCount * sizeof(float));
    const std::span<std::byte> bytes(memory.get(), kCount * sizeof(float));
    seconds[static_cast<std::size_t>(ranks.rank())] = least_seconds([&] {
      sum.add(bytes);
      sum.take(bytes);
    });
  });
  return static_cast<double>(kCount * sizeof(float)) / std::max(seconds[0], seconds[1]);
}

// Times a stage on zeros, since values do not affect kernel times.
double stage_seconds(const distributed::StepStage& stage, int thread_count,
                     const distributed::StepMemory& place) {
  if (stage.graph.node_count() == 0) return 0;
  distributed::StageProgram program(stage.graph, thread_count, place);
  std::vector<std::shared_ptr<std::byte>> memory;
  const auto allocate = [&](ValueId value) {
    const Dim bytes = byte_count(stage.graph.value(value).type.tensor());
    memory.push_back(host_memory().allocate(static_cast<std::size_t>(bytes.constant())));
    return memory.back().get();
  };
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (ValueId input : stage.graph.inputs()) inputs.push_back(allocate(input));
  for (ValueId output : stage.graph.outputs()) outputs.push_back(allocate(output));
  return least_seconds([&] {
    program.run(
        inputs, outputs, [](std::size_t) {}, [](std::size_t) {});
  });
}

// Returns the median step time of a training run on ranks that are threads.
double whole_step_seconds(const Graph& model, const passes::TrainOptions& options,
                          std::int64_t batch, int ranks, int thread_count) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  run_in_lockstep(ranks, [&](Communicator& all) {
    TrainerOptions chosen;
    chosen.train = options;
    chosen.batch_size = batch * ranks;
    chosen.synthetic_samples = 2 * chosen.batch_size;
    chosen.validation_share = 0;
    chosen.epochs = chosen.max_steps = kMostSteps;
    chosen.thread_count = thread_count;
    chosen.ranks = &all;
    Trainer trainer(model, chosen);
    Clock::time_point begin = Clock::now(), last;
    int timed = 0;
    const auto since = [](Clock::time_point from) {
      return std::chrono::duration<double>(Clock::now() - from).count();
    };
    trainer.on_progress = [&](const TrainProgress& at) {
      if (at.step == 1) begin = Clock::now();  // the first step touches cold memory
      if (at.step > 1) ++timed;
      if (at.step > 1 && all.rank() == 0) seconds.push_back(since(last));
      last = Clock::now();
    };
    trainer.should_stop = [&] { return timed >= kFewestSteps && since(begin) > kLongest_s; };
    trainer.run();
  });
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

}  // namespace

distributed::Cluster cluster_here(int thread_count) {
  const profile::MachinePeak peak = profile::cached_machine_peak(thread_count);
  distributed::Cluster here;
  here.name = concat("this machine, ", thread_count, " threads a rank");
  here.ranks = kMostRanks;
  here.device.name = profile::processor_name();
  here.device.flops_per_s = peak.flops_per_s;
  here.device.bytes_per_s = peak.bytes_per_s;
  here.ranks_at_once =
      std::max(1.0, static_cast<double>(usable_threads()) / static_cast<double>(thread_count));
  here.tiers.push_back({"memory", kMostRanks, bytes_exchanged_per_s(), 1e-4});
  return here;
}

distributed::StepCosts measured(distributed::StepCosts costs, const Graph& model,
                                const passes::TrainOptions& options, std::int64_t batch,
                                const distributed::Cluster& here, int thread_count) {
  passes::TrainOptions with_sums = options;
  with_sums.micro_batches = 2;
  with_sums.state_ranks = 1;
  const passes::StatefulGraph step = passes::train(model, with_sums);
  const std::unique_ptr<Communicator> alone = one_rank();
  const distributed::StepMemory place = distributed::host_step_memory(*alone);
  double compute_s = 0;
  costs.update_s = costs.update_start_s = 0;
  for (const distributed::StepStage& stage : distributed::cut_at_collectives(step.graph))
    (stage.follows_reductions ? costs.update_s : compute_s) +=
        stage_seconds(stage, thread_count, place);
  for (distributed::StepCosts::Gradient& gradient : costs.gradients)
    gradient.made_at_s *= compute_s / costs.compute_s;
  costs.compute_s = compute_s;
  // Returns the part of whole step times that the cost model does not explain yet.
  const auto beyond = [&](int ranks) {
    return std::max(0.0, whole_step_seconds(model, options, batch, ranks, thread_count) -
                             distributed::best_plan(costs, here, ranks).step_s);
  };
  costs.between_s = beyond(1);
  if (here.ranks_at_once >= 2) costs.meeting_s = beyond(2);
  return costs;
}

}  // namespace tenon::train
