#include "driver/parallel/ranked_step.h"

#include "base/error.h"
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

std::int64_t integer_attribute(const Graph& graph, NodeId id, const char* name,
                               std::int64_t otherwise) {
  const AttrValue* value = graph.node(id).attrs.find(name);
  return value == nullptr ? otherwise : std::get<Dim>(*value).constant();
}

Tensor memory_for(const Type& type) { return {type.tensor().dtype, constants(type.tensor().dims)}; }

// Values whose sums travel together: gradients of one element type that are made one after another.
struct Bucket {
  std::vector<NodeId> collectives;
  DType dtype = DType::F32;
  std::shared_ptr<std::byte> memory;  // operands, one behind another; then their sums
  std::size_t byte_count = 0;
  std::unique_ptr<RankSum> sum;
  std::size_t missing = 0;    // operands that are not made yet
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
  };
  std::vector<Part> parts;
  std::unordered_map<ValueId, std::shared_ptr<std::byte>> kept;  // of values between stages
  std::unordered_map<ValueId, const std::byte*> places;  // of every value that a stage may read
  std::int64_t key = 0;
  std::int64_t flag = 0, flags = 0;
  RankSum flag_sum;
  std::uint64_t bytes_sent = 0;
  double waited_s = 0;
  TaskThread communication;  // last: it ends before what it works on

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
    require_parts_once();
  }

  const Type& type_of(ValueId value) const { return step.graph.value(value).type; }
  std::size_t bytes_of(ValueId value) const {
    return static_cast<std::size_t>(byte_count(type_of(value).tensor()).constant());
  }
  CollectiveTraits traits_of(NodeId id) const {
    return *collective_traits(*step.graph.node(id).op);
  }
  bool is_over_parts(NodeId id) const {
    return is_sum_over_parts(step.graph, id, options.tensor_ranks);
  }
  ValueId operand_of(NodeId id) const { return step.graph.node(id).operands.front(); }
  ValueId result_of(NodeId id) const { return step.graph.node(id).results.front(); }

  void fill_buckets(Part& part);
  void close_bucket(Part& part, Bucket bucket);
  void require_parts_once() const;
  void run_stage(Part& part, bool is_last_round,
                 const std::unordered_map<ValueId, std::byte*>& targets);
  void start(Bucket& bucket, bool is_last_round);
  void run_other(NodeId id);
  void join_parts(NodeId id, std::int64_t ranks_joined);
  void run_others(Part& part) {
    for (NodeId id : part.others) run_other(id);
  }
  void wait();
};

// By what is made first, so that it leaves first. A sum that stays in pieces travels alone, for its
// pieces are those of one tensor.
void RankedStep::State::fill_buckets(Part& part) {
  std::unordered_map<ValueId, NodeId> sums;
  for (NodeId id : part.stage.collectives) {
    // Of parts of one part of the batch, which may lie along any axis, whole sums alone.
    const CollectiveTraits traits = traits_of(id);
    const bool is_sum = traits.adds && (is_over_parts(id) || !traits.leaves_parts);
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
    if (!sums.contains(operand_of(id)) || sums.at(operand_of(id)) != id) continue;
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
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  for (NodeId id : bucket.collectives) {
    if (!offsets.empty()) bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    offsets.push_back(bytes);
    bytes += bytes_of(operand_of(id));
  }
  bucket.byte_count = bytes;
  bucket.memory = place.memory->allocate(bytes);
  Communicator& group = bucket.is_over_parts ? data : tensor;
  bucket.sum = std::make_unique<RankSum>(group, bucket.dtype, bytes / element, *place.memory);
  const std::byte* base = bucket.memory.get();
  for (std::size_t k = 0; k < offsets.size(); ++k) {
    const NodeId id = bucket.collectives[k];
    if (!bucket.is_copied) places[operand_of(id)] = base + offsets[k];
    places[result_of(id)] = bucket.is_scattered ? bucket.sum->piece().data() : base + offsets[k];
  }
  part.buckets.push_back(std::move(bucket));
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
  communication.add([&bucket, is_complete] {
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

void RankedStep::State::wait() {
  const auto begin = std::chrono::steady_clock::now();
  communication.wait();
  waited_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void RankedStep::State::run_stage(Part& part, bool is_last_round,
                                  const std::unordered_map<ValueId, std::byte*>& targets) {
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
    if (at == nullptr) at = (kept[value] = place.memory->allocate(bytes_of(value))).get();
    outputs.push_back(const_cast<std::byte*>(at));  // memory of buckets and `kept`, which is ours
  }
  for (Bucket& bucket : part.buckets) bucket.missing = bucket.collectives.size();
  if (part.program) {
    part.program->run(inputs, outputs, [&](std::size_t output) {
      const std::size_t k = part.bucket_of[output];
      if (k < part.buckets.size() && --part.buckets[k].missing == 0)
        start(part.buckets[k], is_last_round);
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
void RankedStep::State::join_parts(NodeId id, std::int64_t ranks_joined) {
  const ValueId operand = operand_of(id), result = result_of(id);
  const std::size_t bytes = bytes_of(operand);
  if (!kept.contains(result)) kept[result] = place.memory->allocate(bytes_of(result));
  std::byte* to = kept[result].get();
  places[result] = to;
  const std::span<const std::byte> mine(places.at(operand), bytes);
  const auto stride = static_cast<int>(integer_attribute(step.graph, id, "stride", 1));
  communication.add([this, to, mine, ranks_joined, stride] {
    std::vector<std::span<std::byte>> all;
    for (std::int64_t k = 0; k < ranks_joined; ++k)
      all.emplace_back(to + static_cast<std::size_t>(k) * mine.size(), mine.size());
    RankGroup(*place.ranks, static_cast<int>(ranks_joined), stride).all_gather(mine, all);
  });
}

// Both maps get their entries here: the thread that communicates changes none but what they hold.
void RankedStep::State::run_other(NodeId id) {
  const CollectiveTraits traits = traits_of(id);
  const std::int64_t group = integer_attribute(step.graph, id, "ranks", ranks.size());
  for (ValueId operand : step.graph.node(id).operands) {
    if (!traits.sends_nothing)
      bytes_sent += bytes_of(operand) * static_cast<std::uint64_t>(group - 1);
  }
  const bool is_constant = step.graph.constant_of(operand_of(id)) != nullptr;
  if (traits.joins_parts && integer_attribute(step.graph, id, "axis", 0) == 0 && !is_constant)
    return join_parts(id, group);
  // The rest as the reference has it, in the processor's memory.
  std::shared_ptr<std::byte>& result = kept[result_of(id)];
  if (!result) result = place.memory->allocate(bytes_of(result_of(id)));
  places[result_of(id)] = result.get();
  std::vector<std::pair<TensorType, const std::byte*>> operands;
  for (ValueId operand : step.graph.node(id).operands) {
    const bool is_fixed = step.graph.constant_of(operand) != nullptr;
    operands.emplace_back(type_of(operand).tensor(), is_fixed ? nullptr : places.at(operand));
  }
  communication.add([this, id, operands = std::move(operands), to = result.get()] {
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
  // Outputs that nothing else needs are written where they go; the others are copied there.
  std::unordered_map<ValueId, std::byte*> targets;
  std::vector<std::pair<ValueId, std::byte*>> copies;
  std::vector<Tensor> outputs;
  const auto aim = [&](std::size_t output, std::byte* target) {
    const ValueId value = graph.outputs()[output];
    const NodeId maker = graph.value(value).producer;
    const bool is_direct = maker && !is_collective(*graph.node(maker).op) &&
                           graph.readers(value).empty() && !targets.contains(value);
    if (is_direct) {
      targets[value] = target;
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
      s.run_others(s.parts[k]);
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
    s.run_others(part);
    s.wait();
  }
  for (const auto& [value, to] : copies) {
    const auto direct = targets.find(value);
    const std::byte* from = direct != targets.end() ? direct->second : s.places.at(value);
    s.place.memory->copy(to, from, s.bytes_of(value));
  }
  return outputs;
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

std::size_t RankedStep::bucket_count() const {
  std::size_t count = 0;
  for (const State::Part& part : state_->parts) count += part.buckets.size();
  return count;
}

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
