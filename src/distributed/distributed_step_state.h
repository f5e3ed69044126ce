#pragma once

#include "distributed/distributed_step.h"
#include "distributed/join_parts.h"
#include "distributed/task_thread.h"
#include "ops/families/collective.h"

#include <memory>
#include <unordered_map>
#include <vector>

// State of a step on ranks: distributed_step_plan.cpp plans which values travel together, when and
// from where; distributed_step.cpp executes it.
namespace tenon::distributed {

struct DistributedStep::State {
  // A parameter held in pieces by the ranks, gathered while steps of a stage read it.
  struct Gather {
    NodeId collective;
    WindowedValue window;
    std::byte* to = nullptr;
    std::uint64_t task = 0;  // task of the last gather
  };

  // Work before a step of a stage begins.
  struct Event {
    enum class Kind : std::uint8_t { StartGather, AwaitGather, AwaitBucket };
    std::size_t step = 0;
    Kind kind = Kind::StartGather;
    std::size_t index = 0;  // of the gather or the bucket
  };

  // Values that are reduced together: gradients of one element type, produced one after another.
  struct Bucket {
    std::vector<NodeId> collectives;
    DType dtype = DType::F32;
    std::vector<std::size_t> offsets;   // of the operands
    std::shared_ptr<std::byte> memory;  // contiguous operands, overwritten by their sums
    std::size_t byte_count = 0;
    std::unique_ptr<RankSum> sum;
    std::size_t missing = 0;    // operands that are not produced yet
    std::uint64_t task = 0;     // task of the last send
    bool is_scattered = false;  // reduce-scatter: each rank keeps only its own piece
    // over the parts of a batch; otherwise over the tensor ranks of a part
    bool is_gradient_sum = true;
    bool is_copied = false;  // its operands are produced elsewhere, by an earlier collective
  };

  const passes::StatefulGraph& step;
  Communicator& ranks;
  DistributedStepOptions options;
  StepMemory place;
  RankGroup data, tensor;  // ranks of other parts; of the same part
  std::vector<std::size_t> data_inputs, data_outputs;

  struct StepPart {
    StepStage stage;
    std::unique_ptr<StageProgram> program;  // null if one collective directly follows another
    std::vector<Bucket> buckets;
    std::vector<std::size_t> bucket_of;  // by output; the number of buckets if it is in no bucket
    std::vector<NodeId> others;          // collectives that do not add
    std::vector<Gather> gathers;
    std::vector<Event> events;  // by step
  };
  std::vector<StepPart> parts;
  std::unordered_map<ValueId, std::shared_ptr<std::byte>> kept;  // memory of values between stages
  // address of every value that a stage may read
  std::unordered_map<ValueId, const std::byte*> places;
  std::int64_t key = 0;
  std::int64_t flag = 0, flags = 0;
  RankSum flag_sum;
  std::uint64_t bytes_sent = 0;
  double waited_s = 0;
  std::shared_ptr<RankScratch> scratch = std::make_shared<RankScratch>(*place.memory);
  std::size_t most_taken = 0;  // largest scratch of a bucket
  std::uint64_t held = 0;      // bytes
  TaskThread communication;    // last member: it is destroyed before the data that it uses

  State(const passes::StatefulGraph& graph, Communicator& all, const DistributedStepOptions& chosen,
        StepMemory at);

  const Type& type_of(ValueId value) const { return step.graph.value(value).type; }
  std::size_t bytes_of(ValueId value) const {
    return static_cast<std::size_t>(byte_count(type_of(value).tensor()).constant());
  }
  CollectiveTraits traits_of(NodeId id) const {
    return *collective_traits(*step.graph.node(id).op);
  }
  bool is_sum(NodeId id) const {
    return is_collective(*step.graph.node(id).op) && traits_of(id).adds;
  }
  bool is_gradient_sum(NodeId id) const {
    return is_gradient_reduction(step.graph, id, options.tensor_ranks);
  }
  ValueId operand_of(NodeId id) const { return step.graph.node(id).operands.front(); }
  ValueId result_of(NodeId id) const { return step.graph.node(id).results.front(); }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) {
    held += bytes;
    return place.memory->allocate(bytes);
  }
  std::shared_ptr<std::byte> allocate_visible(std::size_t bytes) {
    held += bytes;
    return place.memory->allocate_visible(bytes);
  }
  bool is_gather(NodeId id) const { return is_state_gather(step.graph, id); }
  std::int64_t attribute(NodeId id, const char* name, std::int64_t otherwise) const {
    const AttrValue* value = step.graph.node(id).attrs.find(name);
    return value == nullptr ? otherwise : std::get<Dim>(*value).constant();
  }

  void fill_buckets(StepPart& part);
  void close_bucket(StepPart& part, Bucket bucket);
  void plan_gathers(StepPart& part);
  void place_buckets(StepPart& part);
  std::vector<WindowedValue> bucket_windows(const StepPart& part) const;
  void require_single_use() const;
  void run_stage(StepPart& part, bool is_last_round,
                 const std::unordered_map<ValueId, std::byte*>& targets);
  void start(Bucket& bucket, bool is_last_round);
  void handle(StepPart& part, const Event& event);
  using Targets = std::unordered_map<ValueId, std::byte*>;
  void run_other(NodeId id, const Targets& targets);
  bool is_joined_in_order(NodeId id) const;
  std::byte* place_for(ValueId made, const Targets& targets);
  JoinedParts joined_shards(NodeId id, std::byte* to);
  std::uint64_t start(std::vector<JoinedParts> joined);
  void run_others(StepPart& part, const Targets& targets);
  void wait() { wait(communication.last()); }
  void wait(std::uint64_t task);
};

}  // namespace tenon::distributed
