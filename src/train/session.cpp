#include "train/session.h"

#include "base/error.h"
#include "base/lockstep.h"
#include "base/text.h"
#include "driver/compile.h"
#include "host/context.h"
#include "ops/families/collective.h"
#include "ops/families/tensor_parts.h"
#include "passes/train/train.h"
#include "reference/evaluate.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::train {
namespace {

constexpr int kTimedRuns = 2;
constexpr std::size_t kDeviceAlignment = 256;

// Returns a rank's share of a state's value.
Tensor share_of(const passes::State& state, const Tensor& whole, const Graph& graph, int rank,
                std::int64_t tensor_ranks) {
  if (!state.split) return whole;
  if (const auto axis = state.split->axis) {
    const std::int64_t extent = whole.shape()[*axis] / tensor_ranks;
    return slice_of(whole, *axis, extent * (rank % tensor_ranks), extent);
  }
  Tensor piece(whole.dtype(),
               constants(graph.value(graph.inputs()[state.input]).type.tensor().dims));
  const std::size_t begin =
      std::min(whole.byte_size(), piece.byte_size() * static_cast<std::size_t>(rank));
  const std::size_t size = std::min(piece.byte_size(), whole.byte_size() - begin);
  if (size > 0) std::memcpy(piece.mutable_bytes().data(), whole.bytes().data() + begin, size);
  return piece;
}

}  // namespace

Session::Session(passes::StatefulGraph graph, const SessionOptions& options,
                 const SessionRanks& ranks)
    : alone_(one_rank()),
      ranks_(ranks.ranks != nullptr ? ranks.ranks : alone_.get()),
      tensor_ranks_(ranks.tensor_ranks),
      step_(std::move(graph)),
      data_inputs_(step_.data_inputs()),
      data_outputs_(step_.data_outputs()),
      is_for_device_(options.target.is_gpu()),
      thread_count_(options.thread_count) {
  if (options.target.precision == TargetSpec::Precision::Int8) {
    throw Error("training does not support int8", ErrorKind::Usage)
        .expected("--precision=f32, tf32, f16 or bf16")
        .hint("train in floats, then run `tenon quantize` on the trained model");
  }
  const bool has_budget = !options.budget.budget.empty();
  if (ranks.ranks != nullptr || ranks.micro_batches > 1) {
    make_ranked(options, ranks);
    return;
  }
  step_ = passes::with_recurrent_states(std::move(step_), is_for_device_);
  const auto compiled = [&](const Graph& made, bool describes) -> codegen::Compiled {
    if (options.compile) return options.compile(made, describes);
    driver::CompileRequest request;
    request.target = options.target;
    request.is_untuned = true;
    request.threads = options.thread_count;
    request.describes_step = describes;
    return driver::compile_model(made, request);
  };
  if (has_budget) {
    planning::StepWithinBudget within = planning::step_within_budget(
        std::move(step_), compiled, planning::with_recurrent_states(options.split, is_for_device_),
        options.budget);
    step_ = std::move(within.step);
    planner_ = std::move(within.planner);
    load(planner_->program());
  } else {
    load(compiled(step_.graph, false).program);
  }
  place_states([&](std::size_t k) { return step_.states[k].initial.materialise(); });
}

// With a budget, runs twice: the second time the memory outside of the arena is known.
void Session::make_ranked(const SessionOptions& options, const SessionRanks& ranks) {
  const bool is_device = options.target.is_gpu();
  const bool has_budget = !options.budget.budget.empty();
  if (!is_device && options.target != TargetSpec{}) {
    throw Error("ranks and parts of a batch take this processor as it is, or a GPU",
                ErrorKind::Unsupported)
        .got(to_string(options.target), " ", to_string(options.target.precision))
        .hint("leave out --precision and --cpu, or --parallel and --micro-batches");
  }
  if (has_budget && (is_device || options.budget.may_split)) {
    throw Error("ranks keep a budget on the processor, without --split", ErrorKind::Unsupported)
        .hint("--micro-batches works a batch off in parts");
  }
  distributed::StepMemory place =
      is_device ? distributed::cuda_step_memory(*ranks_, ranks.ranks != nullptr, options.target)
                : distributed::host_step_memory(*ranks_);
  places_ = std::make_unique<distributed::StateBuffers>(step_, ranks_->rank(), ranks_->size(),
                                                        is_device ? kDeviceAlignment : 1);
  const auto make = [&] {
    ranked_.reset();
    ranked_ = std::make_unique<distributed::DistributedStep>(
        step_, *ranks_,
        distributed::DistributedStepOptions{ranks.micro_batches, options.thread_count,
                                            ranks.bucket_bytes, tensor_ranks_,
                                            ranks.splits_gradients},
        place);
  };
  make();
  const bool splits_parameters = std::ranges::any_of(step_.states, [](const passes::State& state) {
    return state.split && state.split->is_parameter;
  });
  const distributed::RankShares shares{ranks_->size(), ranks.micro_batches, ranks.micro_batch_size,
                                       splits_parameters};
  if (has_budget) {
    const distributed::RankNeeds plain = needs();
    const std::string& text = options.budget.budget;
    const bool is_share = trim(text).ends_with('%');
    const std::uint64_t limit =
        is_share ? plain.outside_arena() + planning::arena_budget(text, plain.arena, 0)
                 : planning::arena_budget(text, plain.arena, 0);
    if (plain.outside_arena() >= limit) distributed::require_fits(plain, limit, shares);
    const std::uint64_t others = plain.arena - ranked_->largest_arena_bytes();
    const std::uint64_t arena = limit - plain.outside_arena();
    if (plain.arena > arena) {
      place.compile = distributed::compiler_within(arena - std::min(arena, others), options.budget);
      make();
    }
    distributed::require_fits(needs(), limit, shares);
  } else if (!is_device && ranks.ranks != nullptr) {
    distributed::require_fits(needs(), distributed::memory_of_rank(), shares);
  }
  places_->allocate(*place.memory);
  place_states([&](std::size_t k) { return step_.states[k].initial.materialise(); });
  malloc_trim(0);  // returns the memory of the copies, as large as the states, to the system
}

TensorType Session::type_of(std::size_t state) const {
  return step_.graph.value(step_.graph.inputs()[step_.states[state].input]).type.tensor();
}

void Session::place_states(const std::function<Tensor(std::size_t)>& whole) {
  for (std::size_t k = 0; k < step_.states.size(); ++k) {
    const passes::State& state = step_.states[k];
    const Tensor share = share_of(state, whole(k), step_.graph, ranks_->rank(), tensor_ranks_);
    if (state.name == passes::kStep) step_number_ = share.integer_at(0);
    if (ranked_) {
      ranked_->place().memory->copy(places_->now(k).get(), share.bytes().data(), share.byte_size());
    } else {
      executor_->write_state(k, share.shape(), share.bytes().data());
    }
  }
}

distributed::RankNeeds Session::needs() const {
  distributed::RankNeeds needs;
  if (!ranked_) {
    needs.states = 2 * state_bytes();
    return needs;
  }
  needs.states = places_->bytes();
  needs.exchanged = ranked_->held_bytes();
  needs.arena = ranked_->arena_bytes();
  return needs;
}

void Session::load(Program program) {
  if (executor_) executor_->rest();  // two arenas at once would exceed the budget
  auto made = std::make_unique<Executor>(load_executable(std::move(program)), thread_count_);
  if (executor_) made->share_states(*executor_);
  executor_ = std::move(made);
}

void Session::rest() {
  if (executor_) executor_->rest();
  if (ranked_) ranked_->rest();
}

std::uint64_t Session::state_bytes() const {
  return places_ ? places_->bytes() / 2 : executor_->states().bytes();
}

std::uint64_t Session::second_place_bytes() const {
  return places_ ? places_->bytes() / 2 : executor_->states().second_bytes();
}

// Uses the second run: the first one touches cold memory.
void Session::learn_times(const RunEvents& events) {
  if (++timed_runs_ < kTimedRuns) return;
  std::vector<double> seconds(program().steps.size(), 0);
  for (const StepEvent& event : events.steps) {
    seconds[event.step] = static_cast<double>(event.end - event.start) * seconds_per_tick();
  }
  if (!planner_->learn(seconds)) return;
  // The previous states on a device may still be requested.
  is_plan_new_ = is_on_device();
  if (!is_on_device()) load(planner_->program());
}

Session::~Session() = default;

const Program& Session::program() const {
  return ranked_ ? ranked_->program() : executor_->program();
}

std::uint64_t Session::arena_bytes() const {
  return ranked_ ? ranked_->arena_bytes() : executor_->arena_bytes();
}

std::vector<Tensor> Session::inputs_before(const std::vector<Tensor>& batch) const {
  std::vector<Tensor> all(step_.graph.inputs().size());
  for (std::size_t k = 0; k < step_.states.size(); ++k)
    all[step_.states[k].input] = state_value(k, true);
  std::size_t next = 0;
  for (const std::size_t input : data_inputs_) {
    const bool is_key = step_.graph.value(step_.graph.inputs()[input]).name == passes::kKey;
    all[input] =
        is_key && batch.size() < data_inputs_.size() ? Tensor(DType::I64, {}) : batch.at(next++);
  }
  return all;
}

Tensor Session::state_value(std::size_t k, bool is_before) const {
  const TensorType type = type_of(k);
  const Shape shape = constants(type.dims);
  const auto bytes = static_cast<std::size_t>(byte_count(type).constant());
  const bool is_far = ranked_ ? ranked_->place().is_device : is_on_device();
  std::shared_ptr<std::byte> place;
  if (ranked_) {
    place = is_before ? places_->next(k) : places_->now(k);
  } else {
    // A non-finite loss leaves states on the CPU unchanged.
    const StateValues& states = executor_->states();
    const bool has_previous = is_before && is_far && states.previous(k).memory;
    place = (has_previous ? states.previous(k) : states.value(k)).memory;
  }
  if (!is_far) return Tensor::borrow(type.dtype, shape, place, {place.get(), bytes});
  Tensor value(type.dtype, shape);
  if (ranked_) {
    ranked_->place().memory->copy(value.mutable_bytes().data(), place.get(), bytes);
  } else {
    executor_->states().memory().copy(value.mutable_bytes().data(), place.get(), bytes);
  }
  return value;
}

std::vector<Tensor> Session::run_micro_batches(
    const std::vector<std::vector<Tensor>>& micro_batches) {
  if (!ranked_) {
    TENON_ASSERT(micro_batches.size() == 1, "a session without parts takes whole batches");
    return run(micro_batches.front());
  }
  std::vector<const std::byte*> now;
  std::vector<std::byte*> next;
  for (std::size_t k = 0; k < step_.states.size(); ++k) {
    now.push_back(places_->now(k).get());
    next.push_back(places_->next(k).get());
  }
  std::vector<Tensor> outputs = ranked_->run(micro_batches, now, next, step_number_++);
  places_->swap();
  return outputs;
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& batch) {
  if (ranked_) return run_micro_batches({batch});
  TENON_ASSERT(batch.size() == data_inputs_.size(), "a tensor for each input that is no state's");
  if (is_plan_new_) load(planner_->program());
  is_plan_new_ = false;
  const Program& p = program();
  std::vector<PortValue> inputs(p.inputs.size()), results(p.outputs.size());
  for (std::size_t k = 0; k < batch.size(); ++k) {
    inputs[data_inputs_[k]].shape = batch[k].shape();
    inputs[data_inputs_[k]].data = batch[k].bytes().data();
  }
  RunEvents events;
  Observers observers;
  const bool is_timed = planner_ && timed_runs_ < kTimedRuns;
  if (is_timed) observers.events = &events;
  executor_->run(inputs, results, observers);
  std::vector<Tensor> outputs;
  for (const std::size_t k : data_outputs_)
    outputs.push_back(datum_of(results[k], p.buffers[p.outputs[k]]).tensor());
  results.clear();
  if (is_timed) learn_times(events);
  return outputs;
}

States Session::states() const {
  States states;
  for (std::size_t k = 0; k < step_.states.size(); ++k) {
    if (step_.states[k].split) continue;
    states.emplace_back(step_.states[k].name, state_value(k));
  }
  return states;
}

States Session::gathered_states(bool with_pieces) const {
  States states = this->states();
  RankGroup group(*ranks_, static_cast<int>(tensor_ranks_), 1);
  for (std::size_t k = 0; k < step_.states.size(); ++k) {
    const passes::State& state = step_.states[k];
    if (with_pieces && state.split && state.split->is_parameter) {
      RankGroup all(*ranks_, ranks_->size(), 1);
      const Tensor joined = gathered(state_value(k), {all.size(), 1, 0}, all);
      Tensor whole(joined.dtype(), state.split->shape);
      std::ranges::copy(joined.bytes().first(whole.byte_size()), whole.mutable_bytes().begin());
      states.emplace_back(state.name, std::move(whole));
    }
    if (!state.split || !state.split->axis) continue;
    const GroupAttrs attrs{tensor_ranks_, 1, static_cast<std::int64_t>(*state.split->axis)};
    states.emplace_back(state.name, gathered(state_value(k), attrs, group));
  }
  return states;
}

std::vector<StatePiece> Session::pieces() const {
  std::vector<StatePiece> pieces;
  for (std::size_t k = 0; k < step_.states.size(); ++k) {
    const passes::State& state = step_.states[k];
    const bool is_own = state.split && !state.split->axis && state.split->whole == state.name;
    if (is_own) pieces.push_back({state.split->whole, state.split->shape, state_value(k)});
  }
  return pieces;
}

void Session::set_states(const States& states) {
  std::vector<Tensor> given;
  for (std::size_t k = 0; k < step_.states.size(); ++k) {
    const passes::State& state = step_.states[k];
    const std::string& name = state.split ? state.split->whole : state.name;
    const auto found = std::ranges::find(states, name, &States::value_type::first);
    if (found == states.end()) throw Error(concat("state '", name, "' is missing"));
    const Tensor& tensor = found->second;
    const TensorType type = type_of(k);
    const Shape shape = state.split ? state.split->shape : constants(type.dims);
    if (tensor.dtype() != type.dtype || tensor.shape() != shape) {
      throw Error(concat("state '", name, "' does not fit"))
          .expected(Tensor(type.dtype, shape).type())
          .got(tensor.type());
    }
    given.push_back(tensor);
  }
  place_states([&](std::size_t k) { return given[k]; });
}

namespace {

enum class Fault : std::uint8_t { None, Infinite, NotANumber };

Fault fault_of(const Datum& datum) {
  if (!datum.is_tensor() || !is_float(datum.tensor().dtype())) return Fault::None;
  Fault worst = Fault::None;
  for (const double value : datum.tensor().reals()) {
    if (std::isnan(value)) return Fault::NotANumber;
    if (std::isinf(value)) worst = Fault::Infinite;
  }
  return worst;
}

struct FoundState {};

}  // namespace

std::string first_not_finite(const passes::StatefulGraph& step, const std::vector<Tensor>& inputs) {
  const Graph& graph = step.graph;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (fault_of(inputs[k]) == Fault::None) continue;
    const bool is_state =
        std::ranges::find(step.states, k, &passes::State::input) != step.states.end();
    return concat(is_state ? "state '" : "input '", graph.value(graph.inputs()[k]).name,
                  "' before the step");
  }
  ValueId first_infinite, first_nan;
  reference::EvaluateOptions options;
  options.on_value = [&](ValueId id, const Datum& datum) {
    if (graph.constant_of(id)) return;  // a mask may contain infinities
    const Fault fault = fault_of(datum);
    if (fault == Fault::Infinite && !first_infinite) first_infinite = id;
    if (fault != Fault::NotANumber) return;
    first_nan = id;
    throw FoundState();
  };
  try {
    reference::evaluate(graph, std::vector<Datum>(inputs.begin(), inputs.end()), options);
  } catch (const FoundState&) {
  }
  const ValueId found = first_nan ? first_nan : first_infinite;
  if (!found) return "";
  return concat(graph.location(graph.value(found).producer),
                first_nan ? " gives NaN" : " gives infinity");
}

}  // namespace tenon::train
