#include "base/error.h"
#include "distributed/distributed_step_state.h"

#include <algorithm>
#include <map>

namespace tenon::distributed {
namespace {

constexpr std::size_t kAlignment = 256;  // alignment for devices

// Parameters are gathered this many steps before they are read, and stay resident over gaps up to
// this length.
constexpr std::size_t kLeadSteps = 6, kLongestGap = 24;
// Number of later buckets whose gradients are computed while one is being sent.
constexpr std::size_t kBucketsUnderWay = 2;

}  // namespace

DistributedStep::State::State(const passes::StatefulGraph& graph, Communicator& all,
                              const DistributedStepOptions& chosen, StepMemory at)
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
  for (StepStage& stage : cut_at_collectives(step.graph, options.tensor_ranks)) {
    StepPart& part = parts.emplace_back();
    part.stage = std::move(stage);
    if (part.stage.graph.node_count() > 0)
      part.program = std::make_unique<StageProgram>(part.stage.graph, options.thread_count, place);
    fill_buckets(part);
  }
  for (StepPart& part : parts) {
    plan_gathers(part);
    place_buckets(part);
    std::ranges::stable_sort(part.events, {},
                             [](const Event& event) { return std::pair(event.step, event.kind); });
  }
  held += most_taken;
  require_single_use();
}

// Fills buckets in the order of production, so that the first gradients are sent first. A
// reduce-scatter travels alone, because its pieces belong to one tensor.
void DistributedStep::State::fill_buckets(StepPart& part) {
  std::unordered_map<ValueId, NodeId> sums;
  for (NodeId id : part.stage.collectives) {
    // Over the tensor ranks of one part, which may be split along any axis, only whole sums.
    const CollectiveTraits traits = traits_of(id);
    const bool is_sum = traits.adds && (is_gradient_sum(id) || !traits.leaves_parts);
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
    const Kind kind{type.dtype, is_gradient_sum(id)};
    Bucket& bucket = open[kind];
    bucket.collectives.push_back(id);
    bucket.is_gradient_sum = kind.second;
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
    alone.is_gradient_sum = is_gradient_sum(id);
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

// Lays out the operands contiguously. The sums overwrite them.
void DistributedStep::State::close_bucket(StepPart& part, Bucket bucket) {
  bucket.dtype = type_of(operand_of(bucket.collectives.front())).tensor().dtype;
  const auto element = static_cast<std::size_t>(info(bucket.dtype).storage_bytes);
  std::size_t bytes = 0;
  for (NodeId id : bucket.collectives) {
    if (!bucket.offsets.empty()) bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    bucket.offsets.push_back(bytes);
    bytes += bytes_of(operand_of(id));
  }
  bucket.byte_count = bytes;
  Communicator& group = bucket.is_gradient_sum ? data : tensor;
  bucket.sum =
      std::make_unique<RankSum>(group, bucket.dtype, bytes / element, *place.memory, scratch);
  held += bucket.sum->piece().size();
  most_taken = std::max(most_taken, group.may_see() ? bucket.sum->piece().size() : bytes);
  part.buckets.push_back(std::move(bucket));
}

// Returns the lifetimes of reduce-scatter buckets, in order: from the first write until a later
// bucket is complete.
std::vector<WindowedValue> DistributedStep::State::bucket_windows(const StepPart& part) const {
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

void DistributedStep::State::place_buckets(StepPart& part) {
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

// Without per-step callbacks, all gathers run before the first step.
void DistributedStep::State::plan_gathers(StepPart& part) {
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

// Requires that values of one part are reduced before later stages read them.
void DistributedStep::State::require_single_use() const {
  for (const StepPart& part : parts) {
    if (!part.stage.follows_reductions) continue;
    for (ValueId value : part.stage.inputs) {
      const bool is_data = std::ranges::any_of(
          data_inputs, [&](std::size_t input) { return step.graph.inputs()[input] == value; });
      TENON_ASSERT(!is_data, "what reads the batch is done for each part of it");
    }
  }
}

}  // namespace tenon::distributed
