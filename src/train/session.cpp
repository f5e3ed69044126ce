#include "train/session.h"

#include "base/error.h"
#include "base/lockstep.h"
#include "base/text.h"
#include "codegen/overwritten_states.h"
#include "driver/compile.h"
#include "host/program_types.h"
#include "ops/families/collective.h"
#include "ops/families/tensor_parts.h"
#include "passes/train/train.h"
#include "program/in_place.h"
#include "reference/evaluate.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::train {
namespace {

constexpr int kTimedRuns = 2;
constexpr std::size_t kDeviceAlignment = 256;

Tensor zeros_like(const Tensor& tensor) { return {tensor.dtype(), tensor.shape()}; }

// Returns a copy in memory of its own.
Tensor own_copy(const Tensor& tensor) {
  Tensor copy = zeros_like(tensor);
  if (tensor.byte_size() > 0)
    std::memcpy(copy.mutable_bytes().data(), tensor.bytes().data(), tensor.byte_size());
  return copy;
}

// Returns a rank's share of a state's value.
Tensor share_of(const passes::State& state, const Tensor& whole, const Graph& graph, int rank,
                std::int64_t tensor_ranks) {
  if (!state.split) return own_copy(whole);
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
  const int thread_count = options.thread_count;
  const bool has_budget = !options.budget.budget.empty();
  for (const passes::State& state : step_.states) {
    now_.push_back(
        share_of(state, state.initial.materialise(), step_.graph, ranks_->rank(), tensor_ranks_));
  }
  before_.resize(now_.size());
  is_in_place_.assign(now_.size(), 0);
  if (ranks.ranks != nullptr || ranks.micro_batches > 1) {
    before_.clear();
    make_ranked(options, ranks);
    return;
  }
  if (!is_for_device_) step_ = passes::skip_nonfinite_updates(std::move(step_));
  const std::vector<StatePorts> step_ports =
      is_for_device_ ? std::vector<StatePorts>() : step_.ports();
  const auto compiled = [&](const Graph& made, bool describes) -> codegen::Compiled {
    if (options.compile) return options.compile(made, describes);
    driver::CompileRequest request;
    request.target = options.target;
    request.is_untuned = true;
    request.threads = thread_count;
    request.describes_step = describes;
    request.states = step_ports;
    codegen::Compiled compiled = driver::compile_model(made, request);
    // Keeps states that can be updated in place in every step that is tried.
    overwritten_ = codegen::common_states(std::move(overwritten_), compiled.overwritten);
    return compiled;
  };
  overwritten_ = step_ports;
  Program program;
  if (has_budget) {
    planning::SplitStep split = options.split;
    if (split.in_micro_batches && !is_for_device_) {
      split.in_micro_batches = [in_micro_batches =
                                    options.split.in_micro_batches](std::int64_t micro_batches) {
        return passes::skip_nonfinite_updates(in_micro_batches(micro_batches));
      };
    }
    planning::StepWithinBudget within =
        planning::step_within_budget(std::move(step_), compiled, split, options.budget);
    step_ = std::move(within.step);
    planner_ = std::move(within.planner);
    program = planner_->program();
  } else {
    program = compiled(step_.graph, false).program;
  }
  if (!program.is_kernel_only()) {
    host_model_ = std::make_shared<const HostExecutable>(std::move(program));
    host_ = std::make_unique<HostContext>(host_model_, thread_count);
    choose_places();
  } else {
    load(std::move(program));
  }
  if (is_on_device()) before_.clear();
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
  place_states();
}

// Moves states of ranks to the memory that steps read, without keeping another copy.
void Session::place_states() {
  const auto counter = std::ranges::find(step_.states, passes::kStep, &passes::State::name);
  step_number_ = now_[static_cast<std::size_t>(counter - step_.states.begin())].integer_at(0);
  for (std::size_t k = 0; k < now_.size(); ++k) {
    const std::shared_ptr<std::byte>& place = places_->now(k);
    ranked_->place().memory->copy(place.get(), now_[k].bytes().data(), now_[k].byte_size());
    now_[k] =
        Tensor::borrow(now_[k].dtype(), now_[k].shape(), place, {place.get(), now_[k].byte_size()});
  }
  is_set_ = false;
  malloc_trim(0);  // returns the memory of the copies, as large as the states, to the system
}

distributed::RankNeeds Session::needs() const {
  distributed::RankNeeds needs;
  if (!ranked_) {
    for (const Tensor& state : now_) needs.states += 2 * state.byte_size();
    return needs;
  }
  needs.states = places_->bytes();
  needs.exchanged = ranked_->held_bytes();
  needs.arena = ranked_->arena_bytes();
  return needs;
}

void Session::load(Program program) {
  context_.reset();  // two arenas at once would exceed the budget
  model_ = std::make_shared<const Executable>(std::move(program));
  open_context();
  if (!is_on_device()) choose_places();
}

void Session::open_context() {
  context_ = std::make_unique<Context>(model_, thread_count_);
  if (!is_on_device()) return;
  std::vector<Feedback> states;
  for (const passes::State& state : step_.states) states.push_back({state.input, state.output});
  context_->keep_on_device(std::move(states));
}

void Session::rest() {
  if (is_on_device() && context_ && !is_set_) {
    for (std::size_t k = 0; k < now_.size(); ++k) now_[k] = state_value(k);
    is_set_ = true;
  }
  context_.reset();
  if (ranked_) ranked_->rest();
}

void Session::choose_places() {
  std::vector<StatePorts> kept;
  for (std::size_t k = 0; k < now_.size(); ++k) {
    const passes::State& state = step_.states[k];
    const auto is_same = [&](const StatePorts& ports) { return ports.output == state.output; };
    is_in_place_[k] = std::ranges::any_of(overwritten_, is_same) &&
                      is_read_first(program(), state.input, state.output);
    if (is_in_place_[k]) kept.push_back({state.input, state.output});
    // a host context allocates one in each run
    const bool needs_second = !is_in_place_[k] && !host_;
    before_[k] = needs_second ? zeros_like(now_[k]) : Tensor();
  }
  if (host_) host_->overwrite(std::move(kept));
}

std::uint64_t Session::state_bytes() const {
  if (places_) return places_->bytes() / 2;
  std::uint64_t bytes = 0;
  for (const Tensor& tensor : now_) bytes += tensor.byte_size();
  return bytes;
}

std::uint64_t Session::second_place_bytes() const {
  if (places_) return places_->bytes() / 2;
  std::uint64_t bytes = 0;
  for (std::size_t k = 0; k < now_.size(); ++k) bytes += is_in_place_[k] ? 0 : now_[k].byte_size();
  return bytes;
}

// Uses the second run: the first one touches cold memory.
void Session::learn_times() {
  if (++timed_runs_ < kTimedRuns) return;
  std::vector<double> seconds(program().steps.size(), 0);
  for (const Watch::Step& step : watch_.steps()) {
    seconds[step.number] = static_cast<double>(step.end - step.start) * seconds_per_tick();
  }
  if (!planner_->learn(seconds)) return;
  // The previous states on a device may still be requested.
  is_plan_new_ = is_on_device();
  if (!is_on_device()) load(planner_->program());
}

Session::~Session() = default;

const Program& Session::program() const {
  if (ranked_) return ranked_->program();
  return model_ ? model_->program() : host_model_->program();
}

std::uint64_t Session::arena_bytes() const {
  if (ranked_) return ranked_->arena_bytes();
  if (host_) return host_->arena_bytes();
  return context_ ? context_->arena_bytes() : program().arena_bytes;
}

std::vector<Tensor> Session::inputs(const std::vector<Tensor>& batch,
                                    const std::vector<Tensor>& states) const {
  TENON_ASSERT(batch.size() == data_inputs_.size(), "a tensor for each input that is no state's");
  std::vector<Tensor> all(step_.graph.inputs().size());
  for (std::size_t k = 0; k < batch.size(); ++k) all[data_inputs_[k]] = batch[k];
  for (std::size_t k = 0; k < states.size(); ++k) all[step_.states[k].input] = states[k];
  return all;
}

std::vector<Tensor> Session::inputs_before(const std::vector<Tensor>& batch) const {
  std::vector<Tensor> states;
  for (std::size_t k = 0; k < now_.size(); ++k) states.push_back(state_value(k, true));
  if (is_on_device()) return inputs(batch, states);
  std::vector<Tensor> data = batch;
  for (std::size_t k = 0; k < data_inputs_.size(); ++k) {
    const bool is_key =
        step_.graph.value(step_.graph.inputs()[data_inputs_[k]]).name == passes::kKey;
    if (is_key) data.insert(data.begin() + static_cast<std::ptrdiff_t>(k), Tensor(DType::I64, {}));
  }
  return inputs(data, states);
}

Tensor Session::state_value(std::size_t k, bool is_before) const {
  if (ranked_) {
    const std::shared_ptr<std::byte>& place = is_before ? places_->next(k) : places_->now(k);
    if (!are_ranks_on_device())
      return Tensor::borrow(now_[k].dtype(), now_[k].shape(), place,
                            {place.get(), now_[k].byte_size()});
    Tensor value = zeros_like(now_[k]);
    ranked_->place().memory->copy(value.mutable_bytes().data(), place.get(), value.byte_size());
    return value;
  }
  if (is_on_device() && !is_set_) {
    Tensor value = zeros_like(now_[k]);
    std::byte* to = value.mutable_bytes().data();
    if (is_before) {
      context_->fetch_input(step_.states[k].input, to);
    } else {
      context_->fetch_output(step_.states[k].output, to);
    }
    return value;
  }
  return now_[k];  // a non-finite loss leaves them unchanged
}

// Extents of a step are static, so that shapes are bound at the start.
std::vector<Tensor> Session::run_on_device(const std::vector<Tensor>& batch) {
  TENON_ASSERT(batch.size() == data_inputs_.size(), "a tensor for each input that is no state's");
  if (is_plan_new_) {
    rest();
    load(planner_->program());
    is_plan_new_ = false;
  }
  if (!context_) open_context();
  const Program& p = program();
  std::vector<const void*> sources(p.inputs.size(), nullptr);
  std::vector<void*> targets(p.outputs.size(), nullptr);
  for (std::size_t k = 0; k < batch.size(); ++k) sources[data_inputs_[k]] = batch[k].bytes().data();
  if (is_set_) {
    for (std::size_t k = 0; k < now_.size(); ++k)
      sources[step_.states[k].input] = now_[k].bytes().data();
  }
  std::vector<Tensor> outputs;
  for (std::size_t k : data_outputs_) {
    outputs.emplace_back(element_type_of(p.buffers[p.outputs[k]]), context_->output_shape(k));
    targets[k] = outputs.back().mutable_bytes().data();
  }
  const bool is_timed = planner_ && timed_runs_ < kTimedRuns;
  if (is_timed) {
    context_->run(sources, targets, watch_);
  } else {
    context_->run(sources, targets);
  }
  is_set_ = false;
  if (is_timed) learn_times();
  return outputs;
}

std::vector<Tensor> Session::run_micro_batches(
    const std::vector<std::vector<Tensor>>& micro_batches) {
  if (!ranked_) {
    TENON_ASSERT(micro_batches.size() == 1, "a session without parts takes whole batches");
    return run(micro_batches.front());
  }
  std::vector<const std::byte*> now;
  std::vector<std::byte*> next;
  for (std::size_t k = 0; k < now_.size(); ++k) {
    now.push_back(places_->now(k).get());
    next.push_back(places_->next(k).get());
  }
  std::vector<Tensor> outputs = ranked_->run(micro_batches, now, next, step_number_++);
  places_->swap();
  return outputs;
}

std::vector<Tensor> Session::run(const std::vector<Tensor>& batch) {
  if (is_on_device()) return run_on_device(batch);
  if (ranked_) return run_micro_batches({batch});
  // Copies if the caller still holds the tensor of an earlier run.
  std::vector<std::byte*> places(now_.size(), nullptr);
  for (std::size_t k = 0; k < now_.size(); ++k) {
    if (is_in_place_[k]) places[k] = now_[k].mutable_bytes().data();
  }
  const std::vector<Tensor> given = inputs(batch, now_);
  std::vector<Tensor> outputs;
  if (host_) {
    const std::vector<Datum> made = host_->run(std::vector<Datum>(given.begin(), given.end()));
    for (std::size_t k = 0; k < now_.size(); ++k) {
      if (!is_in_place_[k]) now_[k] = made[step_.states[k].output].tensor();
    }
    for (std::size_t k : data_outputs_) outputs.push_back(made[k].tensor());
    return outputs;
  }
  std::vector<Shape> shapes;
  std::vector<const void*> sources;
  for (const Tensor& tensor : given) {
    shapes.push_back(tensor.shape());
    sources.push_back(tensor.bytes().data());
  }
  if (!context_) context_ = std::make_unique<Context>(model_, thread_count_);
  context_->bind(shapes);
  const Program& p = program();
  std::vector<void*> targets(p.outputs.size());
  for (std::size_t k : data_outputs_) {
    outputs.emplace_back(element_type_of(p.buffers[p.outputs[k]]), context_->output_shape(k));
    targets[k] = outputs.back().mutable_bytes().data();
  }
  for (std::size_t k = 0; k < now_.size(); ++k) {
    targets[step_.states[k].output] =
        is_in_place_[k] ? places[k] : before_[k].mutable_bytes().data();
  }
  const bool is_timed = planner_ && timed_runs_ < kTimedRuns;
  if (is_timed) {
    context_->run(sources, targets, watch_);
  } else {
    context_->run(sources, targets);
  }
  for (std::size_t k = 0; k < now_.size(); ++k) {
    if (!is_in_place_[k]) std::swap(now_[k], before_[k]);
  }
  if (is_timed) learn_times();
  return outputs;
}

States Session::states() const {
  States states;
  for (std::size_t k = 0; k < now_.size(); ++k) {
    if (step_.states[k].split) continue;
    states.emplace_back(step_.states[k].name, state_value(k));
  }
  return states;
}

States Session::gathered_states(bool with_pieces) const {
  States states = this->states();
  RankGroup group(*ranks_, static_cast<int>(tensor_ranks_), 1);
  for (std::size_t k = 0; k < now_.size(); ++k) {
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
  for (std::size_t k = 0; k < now_.size(); ++k) {
    const passes::State& state = step_.states[k];
    const bool is_own = state.split && !state.split->axis && state.split->whole == state.name;
    if (is_own) pieces.push_back({state.split->whole, state.split->shape, state_value(k)});
  }
  return pieces;
}

void Session::set_states(const States& states) {
  for (std::size_t k = 0; k < now_.size(); ++k) {
    const passes::State& state = step_.states[k];
    const std::string& name = state.split ? state.split->whole : state.name;
    const auto found = std::ranges::find(states, name, &States::value_type::first);
    if (found == states.end()) throw Error(concat("state '", name, "' is missing"));
    const Tensor& given = found->second;
    const Shape& shape = state.split ? state.split->shape : now_[k].shape();
    if (given.dtype() != now_[k].dtype() || given.shape() != shape) {
      throw Error(concat("state '", name, "' does not fit"))
          .expected(Tensor(now_[k].dtype(), shape).type())
          .got(given.type());
    }
    now_[k] = share_of(state, given, step_.graph, ranks_->rank(), tensor_ranks_);
  }
  is_set_ = true;
  if (ranked_) place_states();
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
