#include "driver/parallel/ranked_step.h"

#include "base/error.h"
#include "driver/parallel/join_parts.h"
#include "driver/parallel/task_thread.h"
#include "ops/collective.h"
#include "passes/train/train.h"
#include "program/checksum.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

namespace tenon {
namespace {

constexpr std::size_t kAlignment = 256;  // as devices want it

// Parameters come in so many steps before they are read, and stay over gaps that are not longer.
constexpr std::size_t kLeadSteps = 6, kLongestGap = 24;
// Gradients of so many later buckets are made while one is on its way.
constexpr std::size_t kBucketsUnderWay = 2;

std::int64_t integer_attribute(const Graph& graph, NodeId id, const char* name,
                               std::int64_t otherwise) {
  const AttrValue* value = graph.node(id).attrs.find(name);
  return value == nullptr ? otherwise : std::get<Dim>(*value).constant();
}

Tensor memory_for(const Type& type) { return {type.tensor().dtype, constants(type.tensor().dims)}; }

// A parameter that ranks hold in pieces, put together while steps of a stage read it.
struct Gather {
  NodeId collective;
  WindowedValue window;
  std::byte* to = nullptr;
  std::uint64_t task = 0;  // that has last put it together
};

// What is to be done before a step of a stage begins.
struct Event {
  enum class Kind : std::uint8_t { StartGather, AwaitGather, AwaitBucket };
  std::size_t step = 0;
  Kind kind = Kind::StartGather;
  std::size_t index = 0;  // of the gather or the bucket
};

// Values whose sums travel together: gradients of one element type that are made one after another.
struct Bucket {
  std::vector<NodeId> collectives;
  DType dtype = DType::F32;
  std::vector<std::size_t> offsets;   // of the operands
  std::shared_ptr<std::byte> memory;  // operands, one behind another; then their sums
  std::size_t byte_count = 0;
  std::unique_ptr<RankSum> sum;
  std::size_t missing = 0;    // operands that are not made yet
  std::uint64_t task = 0;     // that has last sent it
  bool is_scattered = false;  // each rank keeps its own piece alone
  bool is_over_parts = true;  // of a batch; else over the ranks that share a part
  bool is_copied = false;     // what it sums is made elsewhere, by a meeting before
};

}  // namespace

struct RankedStep::State {
  const StatefulGraph& step;
  Communicator& ranks;
  RankedStepOptions options;
  StepPlace place;
  RankGroup data, tensor;  // ranks of other parts; of the same
  std::vector<std::size_t> data_inputs, data_outputs;

  struct Part {
    Stage stage;
    std::unique_ptr<StageProgram> program;  // none where one meeting follows another
    std::vector<Bucket> buckets;
    std::vector<std::size_t> bucket_of;  // by output; as many as there are buckets: none
    std::vector<NodeId> others;          // collectives that do not add
    std::vector<Gather> gathers;
    std::vector<Event> events;  // by step
  };
  std::vector<Part> parts;
  std::unordered_map<ValueId, std::shared_ptr<std::byte>> kept;  // of values between stages
  std::unordered_map<ValueId, const std::byte*> places;  // of every value that a stage may read
  std::int64_t key = 0;
  std::int64_t flag = 0, flags = 0;
  RankSum flag_sum;
  std::uint64_t bytes_sent = 0;
  double waited_s = 0;
  std::shared_ptr<RankScratch> scratch = std::make_shared<RankScratch>(*place.memory);
  std::size_t most_taken = 0;  // of that, by the largest bucket
  std::uint64_t held = 0;      // bytes
  TaskThread communication;    // last: it ends before what it works on

  State(const StatefulGraph& graph, Communicator& all, const RankedStepOptions& chosen,
        StepPlace at)
      : step(graph),
        ranks(all),
        options(chosen),
        place(std::move(at)),
        data(*place.ranks, all.size() / static_cast<int>(chosen.tensor_ranks),
             static_cast<int>(chosen.tensor_ranks)),
        tensor(*place.ranks, static_cast<int>(chosen.tensor_ranks), 1),
        data_inputs(graph.data_inputs()),
        data_outputs(graph.data_outputs()),
        flag_sum(all, DType::I64, 1) {
    for (Stage& stage : cut_at_collectives(step.graph, options.tensor_ranks)) {
      Part& part = parts.emplace_back();
      part.stage = std::move(stage);
      if (part.stage.graph.node_count() > 0)
        part.program =
            std::make_unique<StageProgram>(part.stage.graph, options.thread_count, place);
      fill_buckets(part);
    }
    for (Part& part : parts) {
      plan_gathers(part);
      place_buckets(part);
      std::ranges::stable_sort(
          part.events, {}, [](const Event& event) { return std::pair(event.step, event.kind); });
    }
    held += most_taken;
    require_parts_once();
  }

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
  bool is_over_parts(NodeId id) const {
    return is_sum_over_parts(step.graph, id, options.tensor_ranks);
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
  std::int64_t axis_of(NodeId id) const { return integer_attribute(step.graph, id, "axis", 0); }

  void fill_buckets(Part& part);
  void close_bucket(Part& part, Bucket bucket);
  void plan_gathers(Part& part);
  void place_buckets(Part& part);
  std::vector<WindowedValue> bucket_windows(const Part& part) const;
  void require_parts_once() const;
  void run_stage(Part& part, bool is_last_round,
                 const std::unordered_map<ValueId, std::byte*>& targets);
  void start(Bucket& bucket, bool is_last_round);
  void handle(Part& part, const Event& event);
  using Targets = std::unordered_map<ValueId, std::byte*>;
  void run_other(NodeId id, const Targets& targets);
  bool is_joined_in_order(NodeId id) const;
  std::byte* place_for(ValueId made, const Targets& targets);
  JoinedParts joined_parts(NodeId id, std::byte* to);
  std::uint64_t start(std::vector<JoinedParts> joined);
  void run_others(Part& part, const Targets& targets);
  void wait() { wait(communication.last()); }
  void wait(std::uint64_t task);
};

// By what is made first, so that it leaves first. A sum that stays in pieces travels alone, for its
// pieces are those of one tensor.
void RankedStep::State::fill_buckets(Part& part) {
  std::unordered_map<ValueId, NodeId> sums;
  for (NodeId id : part.stage.collectives) {
    // Of parts of one part of the batch, which may lie along any axis, whole sums alone.
    const CollectiveTraits traits = traits_of(id);
    const bool is_sum = traits.adds && (is_over_parts(id) || !traits.leaves_parts);
    if (is_gather(id)) continue;
    if (!is_sum) {
      part.others.push_back(id);
      continue;
    }
    const bool is_new = sums.emplace(operand_of(id), id).second;
    TENON_ASSERT(is_new, "a value is summed once");
  }
  using Kind = std::pair<DType, bool>;  // and whether it is over parts
  std::map<Kind, Bucket> open;
  std::map<Kind, std::size_t> bytes;
  const std::vector<std::size_t> order =
      part.program ? part.program->making_order() : std::vector<std::size_t>{};
  for (std::size_t output : order) {
    const auto found = sums.find(part.stage.outputs[output]);
    if (found == sums.end()) continue;
    const NodeId id = found->second;
    sums.erase(found);
    if (traits_of(id).leaves_parts) {
      Bucket alone;
      alone.collectives.push_back(id);
      alone.is_scattered = true;
      close_bucket(part, std::move(alone));
      continue;
    }
    const TensorType& type = type_of(operand_of(id)).tensor();
    const Kind kind{type.dtype, is_over_parts(id)};
    Bucket& bucket = open[kind];
    bucket.collectives.push_back(id);
    bucket.is_over_parts = kind.second;
    bytes[kind] += bytes_of(operand_of(id));
    if (bytes[kind] < options.bucket_bytes) continue;
    close_bucket(part, std::move(bucket));
    open.erase(kind);
    bytes.erase(kind);
  }
  for (auto& [kind, bucket] : open) close_bucket(part, std::move(bucket));
  for (NodeId id : part.stage.collectives) {
    if (is_gather(id) || !sums.contains(operand_of(id)) || sums.at(operand_of(id)) != id) continue;
    if (step.graph.constant_of(operand_of(id))) {
      throw Error("cannot sum over ranks what no step computes", ErrorKind::Unsupported)
          .got("'", step.graph.value(operand_of(id)).name, "'");
    }
    Bucket alone;
    alone.collectives.push_back(id);
    alone.is_copied = true;
    alone.is_over_parts = is_over_parts(id);
    alone.is_scattered = traits_of(id).leaves_parts;
    close_bucket(part, std::move(alone));
  }
  part.bucket_of.assign(part.stage.outputs.size(), part.buckets.size());
  for (std::size_t k = 0; k < part.buckets.size(); ++k) {
    if (part.buckets[k].is_copied) continue;
    for (NodeId id : part.buckets[k].collectives) {
      const auto output = std::ranges::find(part.stage.outputs, operand_of(id));
      part.bucket_of[static_cast<std::size_t>(output - part.stage.outputs.begin())] = k;
    }
  }
}

// Lays the operands out one behind another. The sums take their place.
void RankedStep::State::close_bucket(Part& part, Bucket bucket) {
  bucket.dtype = type_of(operand_of(bucket.collectives.front())).tensor().dtype;
  const auto element = static_cast<std::size_t>(info(bucket.dtype).storage_bytes);
  std::size_t bytes = 0;
  for (NodeId id : bucket.collectives) {
    if (!bucket.offsets.empty()) bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    bucket.offsets.push_back(bytes);
    bytes += bytes_of(operand_of(id));
  }
  bucket.byte_count = bytes;
  Communicator& group = bucket.is_over_parts ? data : tensor;
  bucket.sum =
      std::make_unique<RankSum>(group, bucket.dtype, bytes / element, *place.memory, scratch);
  held += bucket.sum->piece().size();
  most_taken = std::max(most_taken, group.may_see() ? bucket.sum->piece().size() : bytes);
  part.buckets.push_back(std::move(bucket));
}

// Of buckets that leave pieces behind, in their order: from when one is first written to until a
// later one is made.
std::vector<WindowedValue> RankedStep::State::bucket_windows(const Part& part) const {
  std::vector<WindowedValue> windows;
  std::vector<std::size_t> made;
  for (const Bucket& bucket : part.buckets) {
    if (!bucket.is_scattered || bucket.is_copied) continue;
    WindowedValue& window = windows.emplace_back(WindowedValue{bucket.byte_count, {{}}});
    StepInterval& interval = window.intervals.front();
    interval.begin = part.program->program().steps.size();
    for (NodeId id : bucket.collectives) {
      const auto output = std::ranges::find(part.stage.outputs, operand_of(id));
      const StepInterval one =
          part.program->steps_making(static_cast<std::size_t>(output - part.stage.outputs.begin()));
      interval = {std::min(interval.begin, one.begin), std::max(interval.end, one.end)};
    }
    made.push_back(interval.end);
  }
  for (std::size_t k = 0; k + kBucketsUnderWay < windows.size(); ++k)
    windows[k].intervals.front().end =
        std::max(windows[k].intervals.front().end, made[k + kBucketsUnderWay]);
  return windows;
}

void RankedStep::State::place_buckets(Part& part) {
  const bool has_windows = options.splits_gradients && part.program && part.program->has_steps();
  if (has_windows) {
    const std::vector<WindowedValue> windows = bucket_windows(part);
    const WindowPlan plan = place_windows(windows, kAlignment);
    const std::shared_ptr<std::byte> memory = allocate_visible(plan.bytes);
    std::vector<std::size_t> sharing;  // buckets by window
    for (std::size_t k = 0; k < part.buckets.size(); ++k) {
      Bucket& bucket = part.buckets[k];
      if (!bucket.is_scattered || bucket.is_copied) continue;
      const std::size_t mine = sharing.size();
      bucket.memory = {memory, memory.get() + plan.offsets[mine]};
      const auto end_of = [&](std::size_t one) { return plan.offsets[one] + windows[one].bytes; };
      for (std::size_t other = 0; other < mine; ++other) {
        if (plan.offsets[other] < end_of(mine) && plan.offsets[mine] < end_of(other))
          part.events.push_back(
              {windows[mine].intervals.front().begin, Event::Kind::AwaitBucket, sharing[other]});
      }
      sharing.push_back(k);
    }
  }
  for (Bucket& bucket : part.buckets) {
    if (!bucket.memory) bucket.memory = allocate_visible(bucket.byte_count);
    const std::byte* base = bucket.memory.get();
    for (std::size_t k = 0; k < bucket.offsets.size(); ++k) {
      const NodeId id = bucket.collectives[k];
      if (!bucket.is_copied) places[operand_of(id)] = base + bucket.offsets[k];
      places[result_of(id)] =
          bucket.is_scattered ? bucket.sum->piece().data() : base + bucket.offsets[k];
    }
  }
}

// Where steps are not seen one by one, all of them are put together before the first.
void RankedStep::State::plan_gathers(Part& part) {
  if (!part.program) return;
  const bool has_windows = part.program->has_steps();
  const std::size_t end = part.program->program().steps.size();
  std::vector<WindowedValue> windows;
  for (std::size_t input = 0; input < part.stage.inputs.size(); ++input) {
    const NodeId maker = step.graph.value(part.stage.inputs[input]).producer;
    if (!maker || !is_collective(*step.graph.node(maker).op) || !is_gather(maker)) continue;
    Gather gather{maker, {bytes_of(result_of(maker)), {{0, end}}}};
    if (has_windows) {
      std::vector<std::size_t> reads = part.program->steps_reading(input);
      if (reads.empty()) reads.push_back(0);
      gather.window.intervals = intervals_of(reads, kLeadSteps, kLongestGap);
      for (const StepInterval& interval : gather.window.intervals) {
        const std::size_t first = *std::ranges::lower_bound(reads, interval.begin);
        part.events.push_back({interval.begin, Event::Kind::StartGather, part.gathers.size()});
        part.events.push_back({first, Event::Kind::AwaitGather, part.gathers.size()});
      }
    } else {
      part.events.push_back({0, Event::Kind::StartGather, part.gathers.size()});
      part.events.push_back({end, Event::Kind::AwaitGather, part.gathers.size()});
    }
    windows.push_back(gather.window);
    part.gathers.push_back(gather);
  }
  if (part.gathers.empty()) return;
  const WindowPlan plan = place_windows(windows, kAlignment);
  kept[result_of(part.gathers.front().collective)] = allocate(plan.bytes);
  std::byte* base = kept[result_of(part.gathers.front().collective)].get();
  for (std::size_t k = 0; k < part.gathers.size(); ++k) part.gathers[k].to = base + plan.offsets[k];
}

void RankedStep::State::handle(Part& part, const Event& event) {
  switch (event.kind) {
    case Event::Kind::StartGather: {
      Gather& gather = part.gathers[event.index];
      gather.task = start({joined_parts(gather.collective, gather.to)});
      return;
    }
    case Event::Kind::AwaitGather:
      return wait(part.gathers[event.index].task);
    case Event::Kind::AwaitBucket:
      return wait(part.buckets[event.index].task);
  }
}

// What a part of the batch leads to must have been summed before later stages read it.
void RankedStep::State::require_parts_once() const {
  for (const Part& part : parts) {
    if (!part.stage.is_behind_sums) continue;
    for (ValueId value : part.stage.inputs) {
      const bool is_data = std::ranges::any_of(
          data_inputs, [&](std::size_t input) { return step.graph.inputs()[input] == value; });
      TENON_ASSERT(!is_data, "what reads the batch is done for each part of it");
    }
  }
}

// A sum of the last round is complete where it is read.
void RankedStep::State::start(Bucket& bucket, bool is_last_round) {
  const Communicator& group = bucket.is_over_parts ? data : tensor;
  const bool is_complete = is_last_round || !bucket.is_over_parts;
  const auto size = static_cast<std::uint64_t>(group.size());
  bytes_sent +=
      bucket.byte_count * (size - 1) / size * (is_complete && !bucket.is_scattered ? 2 : 1);
  bucket.task = communication.add([&bucket, is_complete] {
    const std::span<std::byte> memory(bucket.memory.get(), bucket.byte_count);
    bucket.sum->add(memory);
    if (!is_complete) return;
    if (bucket.is_scattered) {
      bucket.sum->end();
    } else {
      bucket.sum->take(memory);
    }
  });
}

void RankedStep::State::wait(std::uint64_t task) {
  const auto begin = std::chrono::steady_clock::now();
  communication.wait(task);
  waited_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void RankedStep::State::run_stage(Part& part, bool is_last_round,
                                  const std::unordered_map<ValueId, std::byte*>& targets) {
  for (const Gather& gather : part.gathers) places[result_of(gather.collective)] = gather.to;
  std::vector<const std::byte*> inputs;
  for (ValueId value : part.stage.inputs) inputs.push_back(places.at(value));
  std::vector<std::byte*> outputs;
  for (ValueId value : part.stage.outputs) {
    const auto target = targets.find(value);
    if (target != targets.end()) {
      outputs.push_back(target->second);
      continue;
    }
    auto& at = places[value];
    if (at == nullptr) at = (kept[value] = allocate(bytes_of(value))).get();
    outputs.push_back(const_cast<std::byte*>(at));  // memory of buckets and `kept`, which is ours
  }
  for (Bucket& bucket : part.buckets) bucket.missing = bucket.collectives.size();
  if (part.program) {
    const auto when_made = [&](std::size_t output) {
      const std::size_t k = part.bucket_of[output];
      if (k < part.buckets.size() && --part.buckets[k].missing == 0)
        start(part.buckets[k], is_last_round);
    };
    std::size_t handled = 0;
    part.program->run(inputs, outputs, when_made, [&](std::size_t number) {
      for (; handled < part.events.size() && part.events[handled].step <= number; ++handled)
        handle(part, part.events[handled]);
    });
  }
  for (Bucket& bucket : part.buckets) {
    if (!bucket.is_copied) continue;
    place.memory->copy(bucket.memory.get(), places.at(operand_of(bucket.collectives[0])),
                       bucket.byte_count);
    start(bucket, is_last_round);
  }
}

// Along the first axis parts lie one behind another: they come where they belong.
bool RankedStep::State::is_joined_in_order(NodeId id) const {
  const bool is_constant = step.graph.constant_of(operand_of(id)) != nullptr;
  return traits_of(id).joins_parts && axis_of(id) == 0 && !is_constant;
}

JoinedParts RankedStep::State::joined_parts(NodeId id, std::byte* to) {
  const ValueId part = operand_of(id);
  const JoinedParts joined{places.at(part),
                           to,
                           bytes_of(part),
                           bytes_of(result_of(id)),
                           static_cast<int>(integer_attribute(step.graph, id, "ranks", 1)),
                           static_cast<int>(integer_attribute(step.graph, id, "stride", 1))};
  bytes_sent += joined.part_bytes * static_cast<std::uint64_t>(joined.ranks - 1);
  return joined;
}

std::uint64_t RankedStep::State::start(std::vector<JoinedParts> joined) {
  return communication.add(
      [this, joined = std::move(joined)] { join_parts(joined, *place.ranks, *place.memory); });
}

std::byte* RankedStep::State::place_for(ValueId made, const Targets& targets) {
  const auto target = targets.find(made);
  std::byte* to = target == targets.end() ? nullptr : target->second;
  if (to == nullptr) {
    std::shared_ptr<std::byte>& memory = kept[made];
    if (!memory) memory = allocate(bytes_of(made));
    to = memory.get();
  }
  places[made] = to;
  return to;
}

// Tensors that are put together go together.
void RankedStep::State::run_others(Part& part, const Targets& targets) {
  std::vector<JoinedParts> joined;
  for (NodeId id : part.others) {
    if (is_joined_in_order(id)) {
      joined.push_back(joined_parts(id, place_for(result_of(id), targets)));
    } else {
      run_other(id, targets);
    }
  }
  if (!joined.empty()) start(std::move(joined));
}

// Both maps get their entries here: the thread that communicates changes none but what they hold.
void RankedStep::State::run_other(NodeId id, const Targets& targets) {
  const CollectiveTraits traits = traits_of(id);
  std::byte* to = place_for(result_of(id), targets);
  const std::int64_t group = integer_attribute(step.graph, id, "ranks", ranks.size());
  for (ValueId operand : step.graph.node(id).operands) {
    if (!traits.sends_nothing)
      bytes_sent += bytes_of(operand) * static_cast<std::uint64_t>(group - 1);
  }
  // The rest as the reference has it, in the processor's memory.
  std::vector<std::pair<TensorType, const std::byte*>> operands;
  for (ValueId operand : step.graph.node(id).operands) {
    const bool is_fixed = step.graph.constant_of(operand) != nullptr;
    operands.emplace_back(type_of(operand).tensor(), is_fixed ? nullptr : places.at(operand));
  }
  communication.add([this, id, operands = std::move(operands), to] {
    std::vector<std::optional<Datum>> given;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      const auto& [type, from] = operands[k];
      if (from == nullptr) {
        given.emplace_back(step.graph.constant_of(step.graph.node(id).operands[k])->materialise());
        continue;
      }
      Tensor value(type.dtype, constants(type.dims));
      place.memory->copy(value.mutable_bytes().data(), from, value.byte_size());
      given.emplace_back(std::move(value));
    }
    reference::Options evaluation;
    evaluation.communicator = &ranks;
    const std::vector<Datum> made = reference::evaluate_node(step.graph, id, given, {}, evaluation);
    const Tensor& value = made.front().tensor();
    place.memory->copy(to, value.bytes().data(), value.byte_size());
  });
}

RankedStep::RankedStep(const StatefulGraph& step, Communicator& ranks,
                       const RankedStepOptions& options, StepPlace place)
    : state_(std::make_unique<State>(step, ranks, options, std::move(place))) {
  TENON_ASSERT(options.part_count % state_->data.size() == 0, "every rank has as many parts");
}

RankedStep::~RankedStep() = default;

std::vector<Tensor> RankedStep::run(const std::vector<std::vector<Tensor>>& given,
                                    std::span<const std::byte* const> now,
                                    std::span<std::byte* const> next, std::int64_t step_number) {
  State& s = *state_;
  const Graph& graph = s.step.graph;
  // Outputs are written where they go; what sums leave elsewhere is copied there.
  std::unordered_map<ValueId, std::byte*> targets;
  std::vector<std::pair<ValueId, std::byte*>> copies;
  std::vector<Tensor> outputs;
  const auto aim = [&](std::size_t output, std::byte* target) {
    const ValueId value = graph.outputs()[output];
    const NodeId maker = graph.value(value).producer;
    const bool is_sum = maker && s.is_sum(maker);
    const bool is_sent = std::ranges::any_of(graph.readers(value), [&](NodeId reader) {
      return s.is_sum(reader);  // from where its bucket lies
    });
    if (maker && !is_sum && !is_sent && !targets.contains(value)) {
      targets[value] = target;
      s.places[value] = target;  // for later stages that read it
    } else {
      copies.emplace_back(value, target);
    }
  };
  for (std::size_t k : s.data_outputs) outputs.push_back(memory_for(s.type_of(graph.outputs()[k])));
  for (std::size_t k = 0; k < outputs.size(); ++k)
    aim(s.data_outputs[k], outputs[k].mutable_bytes().data());
  for (std::size_t k = 0; k < next.size(); ++k) aim(s.step.states[k].output, next[k]);
  for (std::size_t k = 0; k < now.size(); ++k)
    s.places[graph.inputs()[s.step.states[k].input]] = now[k];

  for (std::size_t round = 0; round < given.size(); ++round) {
    const auto part =
        static_cast<std::int64_t>(round) * s.data.size() + static_cast<std::int64_t>(s.data.rank());
    s.key = step_number * s.options.part_count + part;
    std::size_t at = 0;
    for (std::size_t input : s.data_inputs) {
      const ValueId value = graph.inputs()[input];
      const bool is_key = graph.value(value).name == kKey;
      s.places[value] = is_key ? reinterpret_cast<const std::byte*>(&s.key)
                               : given[round].at(at++).bytes().data();
    }
    const bool is_last = round + 1 == given.size();
    for (std::size_t k = 0; k < s.parts.size() && !s.parts[k].stage.is_behind_sums; ++k) {
      if (k > 0) s.wait();  // it reads what ranks of the same part gave
      s.run_stage(s.parts[k], is_last, targets);
      s.run_others(s.parts[k], targets);
    }
    if (!is_last) s.wait();  // the next round writes over what is being sent
  }
  s.communication.add([&s] {
    s.flag_sum.add(std::as_bytes(std::span(&s.flag, 1)));
    s.flag_sum.take(std::as_writable_bytes(std::span(&s.flags, 1)));
  });
  s.wait();
  for (State::Part& part : s.parts) {
    if (!part.stage.is_behind_sums) continue;
    s.run_stage(part, true, targets);
    s.run_others(part, targets);
    s.wait();
  }
  for (const auto& [value, to] : copies) {
    const auto direct = targets.find(value);
    const std::byte* from = direct != targets.end() ? direct->second : s.places.at(value);
    s.place.memory->copy(to, from, s.bytes_of(value));
  }
  return outputs;
}

void RankedStep::rest() {
  for (State::Part& part : state_->parts) {
    if (part.program) part.program->rest();
  }
}

void RankedStep::set_flag(bool flag) { state_->flag = flag ? 1 : 0; }
std::int64_t RankedStep::flags() const { return state_->flags; }
const StepPlace& RankedStep::place() const { return state_->place; }
const Program& RankedStep::program() const {
  const auto first = std::ranges::find_if(
      state_->parts, [](const State::Part& part) { return part.program != nullptr; });
  TENON_ASSERT(first != state_->parts.end(), "a step computes something");
  return first->program->program();
}

std::uint64_t RankedStep::arena_bytes() const {
  std::uint64_t bytes = 0;
  for (const State::Part& part : state_->parts) {
    if (part.program) bytes += part.program->arena_bytes();
  }
  return bytes;
}

std::uint64_t RankedStep::largest_arena_bytes() const {
  std::uint64_t bytes = 0;
  for (const State::Part& part : state_->parts) {
    if (part.program) bytes = std::max(bytes, part.program->arena_bytes());
  }
  return bytes;
}

std::size_t RankedStep::bucket_count() const {
  std::size_t count = 0;
  for (const State::Part& part : state_->parts) count += part.buckets.size();
  return count;
}

std::uint64_t RankedStep::held_bytes() const { return state_->held; }

CommunicationTimes RankedStep::times() const {
  return {state_->communication.busy_s(), state_->waited_s, state_->bytes_sent};
}

std::string RankedStep::code_hash() const {
  std::string text;
  for (const State::Part& part : state_->parts) {
    if (!part.program) continue;
    const Program& program = part.program->program();
    text += concat(program.target, ":", checksum(program.code), ";");
  }
  return text;
}

}  // namespace tenon
