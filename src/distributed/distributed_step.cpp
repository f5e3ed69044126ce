#include "distributed/distributed_step.h"

#include "base/error.h"
#include "distributed/distributed_step_state.h"
#include "passes/train/train.h"
#include "program/checksum.h"
#include "reference/evaluate.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

namespace tenon::distributed {
namespace {

Tensor memory_for(const Type& type) { return {type.tensor().dtype, constants(type.tensor().dims)}; }

}  // namespace

void DistributedStep::State::handle(StepPart& part, const Event& event) {
  switch (event.kind) {
    case Event::Kind::StartGather: {
      Gather& gather = part.gathers[event.index];
      gather.task = start({joined_shards(gather.collective, gather.to)});
      return;
    }
    case Event::Kind::AwaitGather:
      return wait(part.gathers[event.index].task);
    case Event::Kind::AwaitBucket:
      return wait(part.buckets[event.index].task);
  }
}

// The all-reduce of the last round completes at its readers.
void DistributedStep::State::start(Bucket& bucket, bool is_last_round) {
  const Communicator& group = bucket.is_gradient_sum ? data : tensor;
  const bool is_complete = is_last_round || !bucket.is_gradient_sum;
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

void DistributedStep::State::wait(std::uint64_t task) {
  const auto begin = std::chrono::steady_clock::now();
  communication.wait(task);
  waited_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void DistributedStep::State::run_stage(StepPart& part, bool is_last_round,
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
    outputs.push_back(const_cast<std::byte*>(at));  // memory of buckets and of `kept`, owned here
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

// Along the first axis parts are contiguous and are received in place.
bool DistributedStep::State::is_joined_in_order(NodeId id) const {
  const bool is_constant = step.graph.constant_of(operand_of(id)) != nullptr;
  return traits_of(id).joins_parts && attribute(id, "axis", 0) == 0 && !is_constant;
}

JoinedParts DistributedStep::State::joined_shards(NodeId id, std::byte* to) {
  const ValueId part = operand_of(id);
  const JoinedParts joined{places.at(part),
                           to,
                           bytes_of(part),
                           bytes_of(result_of(id)),
                           static_cast<int>(attribute(id, "ranks", 1)),
                           static_cast<int>(attribute(id, "stride", 1))};
  bytes_sent += joined.part_bytes * static_cast<std::uint64_t>(joined.ranks - 1);
  return joined;
}

std::uint64_t DistributedStep::State::start(std::vector<JoinedParts> joined) {
  return communication.add(
      [this, joined = std::move(joined)] { join_parts(joined, *place.ranks, *place.memory); });
}

std::byte* DistributedStep::State::place_for(ValueId made, const Targets& targets) {
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

// Gathers several tensors together.
void DistributedStep::State::run_others(StepPart& part, const Targets& targets) {
  std::vector<JoinedParts> joined;
  for (NodeId id : part.others) {
    if (is_joined_in_order(id)) {
      joined.push_back(joined_shards(id, place_for(result_of(id), targets)));
    } else {
      run_other(id, targets);
    }
  }
  if (!joined.empty()) start(std::move(joined));
}

// Both maps are filled here: the communication thread only changes the data of their entries.
void DistributedStep::State::run_other(NodeId id, const Targets& targets) {
  const CollectiveTraits traits = traits_of(id);
  std::byte* to = place_for(result_of(id), targets);
  const std::int64_t group = attribute(id, "ranks", ranks.size());
  for (ValueId operand : step.graph.node(id).operands) {
    if (!traits.sends_nothing)
      bytes_sent += bytes_of(operand) * static_cast<std::uint64_t>(group - 1);
  }
  // Evaluates the remaining collectives with the reference, in host memory.
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
    reference::EvaluateOptions evaluation;
    evaluation.communicator = &ranks;
    const std::vector<Datum> made = reference::evaluate_node(step.graph, id, given, {}, evaluation);
    const Tensor& value = made.front().tensor();
    place.memory->copy(to, value.bytes().data(), value.byte_size());
  });
}

DistributedStep::DistributedStep(const passes::StatefulGraph& step, Communicator& ranks,
                                 const DistributedStepOptions& options, StepMemory place)
    : state_(std::make_unique<State>(step, ranks, options, std::move(place))) {
  TENON_ASSERT(options.micro_batch_count % state_->data.size() == 0,
               "every rank has as many parts");
}

DistributedStep::~DistributedStep() = default;

std::vector<Tensor> DistributedStep::run(const std::vector<std::vector<Tensor>>& given,
                                         std::span<const std::byte* const> now,
                                         std::span<std::byte* const> next,
                                         std::int64_t step_number) {
  State& s = *state_;
  const Graph& graph = s.step.graph;
  // Outputs are written in place; results of collectives that end elsewhere are copied.
  std::unordered_map<ValueId, std::byte*> targets;
  std::vector<std::pair<ValueId, std::byte*>> copies;
  std::vector<Tensor> outputs;
  const auto aim = [&](std::size_t output, std::byte* target) {
    const ValueId value = graph.outputs()[output];
    const NodeId maker = graph.value(value).producer;
    const bool is_sum = maker && s.is_sum(maker);
    const bool is_sent = std::ranges::any_of(graph.readers(value), [&](NodeId reader) {
      return s.is_sum(reader);  // sent from its bucket
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
    s.key = step_number * s.options.micro_batch_count + part;
    std::size_t at = 0;
    for (std::size_t input : s.data_inputs) {
      const ValueId value = graph.inputs()[input];
      const bool is_key = graph.value(value).name == passes::kKey;
      s.places[value] = is_key ? reinterpret_cast<const std::byte*>(&s.key)
                               : given[round].at(at++).bytes().data();
    }
    const bool is_last = round + 1 == given.size();
    for (std::size_t k = 0; k < s.parts.size() && !s.parts[k].stage.follows_reductions; ++k) {
      if (k > 0) s.wait();  // it reads results of the ranks of the same part
      s.run_stage(s.parts[k], is_last, targets);
      s.run_others(s.parts[k], targets);
    }
    if (!is_last) s.wait();  // the next round overwrites the data being sent
  }
  s.communication.add([&s] {
    s.flag_sum.add(std::as_bytes(std::span(&s.flag, 1)));
    s.flag_sum.take(std::as_writable_bytes(std::span(&s.flags, 1)));
  });
  s.wait();
  for (State::StepPart& part : s.parts) {
    if (!part.stage.follows_reductions) continue;
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

void DistributedStep::rest() {
  for (State::StepPart& part : state_->parts) {
    if (part.program) part.program->rest();
  }
}

void DistributedStep::set_flag(bool flag) { state_->flag = flag ? 1 : 0; }
std::int64_t DistributedStep::flags() const { return state_->flags; }
const StepMemory& DistributedStep::place() const { return state_->place; }
const Program& DistributedStep::program() const {
  const auto first = std::ranges::find_if(
      state_->parts, [](const State::StepPart& part) { return part.program != nullptr; });
  TENON_ASSERT(first != state_->parts.end(), "a step computes something");
  return first->program->program();
}

std::uint64_t DistributedStep::arena_bytes() const {
  std::uint64_t bytes = 0;
  for (const State::StepPart& part : state_->parts) {
    if (part.program) bytes += part.program->arena_bytes();
  }
  return bytes;
}

std::uint64_t DistributedStep::largest_arena_bytes() const {
  std::uint64_t bytes = 0;
  for (const State::StepPart& part : state_->parts) {
    if (part.program) bytes = std::max(bytes, part.program->arena_bytes());
  }
  return bytes;
}

std::size_t DistributedStep::bucket_count() const {
  std::size_t count = 0;
  for (const State::StepPart& part : state_->parts) count += part.buckets.size();
  return count;
}

std::uint64_t DistributedStep::held_bytes() const { return state_->held; }

CommunicationTimes DistributedStep::times() const {
  return {state_->communication.busy_s(), state_->waited_s, state_->bytes_sent};
}

std::string DistributedStep::code_hash() const {
  std::string text;
  for (const State::StepPart& part : state_->parts) {
    if (!part.program) continue;
    const Program& program = part.program->program();
    text += concat(program.target, ":", checksum(program.code), ";");
  }
  return text;
}

}  // namespace tenon::distributed
