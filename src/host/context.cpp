#include "host/context.h"

#include "base/error.h"
#include "expr/lowering.h"
#include "host/loop.h"
#include "host/program_types.h"
#include "host/values.h"
#include "reference/evaluate.h"

#include <algorithm>

namespace tenon::inline host {

struct HostContext::State {
  State(const HostExecutable& shared, KernelRunner& kernels)
      : model(shared), runner(kernels), values(model, runner) {}

  const HostExecutable& model;
  KernelRunner& runner;
  RunValues values;
  std::function<void()> before_body;
  RunEvents* events = nullptr;  // of the observed run
  const Observers* observers = nullptr;
  Watch watch;

  const Program& program() const { return model.program(); }
  std::vector<Datum> run(const std::vector<Datum>& inputs);
  void run_steps(std::uint32_t begin, std::uint32_t end);
  void run_kernels(std::size_t segment);
  void run_operator(std::uint32_t step);
  void observe(std::uint32_t step, const std::vector<Datum>& results) const;
  bool run_host_kernel(const ReadyOperator& ready, const Attributes& attributes,
                       const std::vector<std::optional<Datum>>& operands,
                       const std::vector<bool>& wanted, const std::vector<std::uint32_t>& ids);
  void run_branch(std::uint32_t step);
  DimBindings symbols() const;
};

std::vector<Datum> HostContext::State::run(const std::vector<Datum>& inputs) {
  try {
    values.begin(inputs);
    run_steps(0, static_cast<std::uint32_t>(program().steps.size()));
    return values.end();
  } catch (...) {
    values.clear();
    throw;
  }
}

void HostContext::State::run_steps(std::uint32_t begin, std::uint32_t end) {
  for (std::uint32_t k = begin; k < end;) {
    const Program::Step& step = program().steps[k];
    std::uint32_t next = end_of(program(), k);
    if (step.kind == Program::StepKind::Kernel) {
      const std::size_t segment = model.segment_at(k);
      run_kernels(segment);
      next = model.model().segments()[segment].end;
    } else {
      const std::uint64_t start = events != nullptr ? ticks() : 0;
      const std::size_t first_inner = events != nullptr ? events->steps.size() : 0;
      if (step.kind == Program::StepKind::Host) run_operator(k);
      if (step.kind == Program::StepKind::Branch) run_branch(k);
      if (step.kind == Program::StepKind::Loop) {
        run_loop(program().loops[step.detail], step.value, values, [&] {
          if (before_body) before_body();
          values.begin_body(k);
          run_steps(k + 1, next);
        });
      }
      if (events != nullptr) events->add_around(k, start, ticks(), first_inner);
    }
    for (; k < next; ++k) {
      for (const std::uint32_t slot : model.last_uses()[k]) values.release(slot);
    }
  }
}

void HostContext::State::run_kernels(std::size_t segment) {
  const Segment& described = model.model().segments()[segment];
  runner.prepare(segment);
  values.check_reads(described);
  for (const std::uint32_t slot : described.slots) values.make_slot(slot);
  if (events != nullptr) {
    runner.run(segment, watch);
    events->add(watch);
  } else if (observers->after_step) {
    runner.run(segment, [&](std::size_t step) { observers->after_step(runner, step); });
  } else {
    runner.run(segment);
  }
}

DimBindings HostContext::State::symbols() const {
  DimBindings known;
  for (std::size_t k = 0; k < program().symbols.size(); ++k) {
    if (runner.is_known[k]) known.emplace(program().symbols[k].name, Dim(runner.symbols[k]));
  }
  return known;
}

void HostContext::State::observe(std::uint32_t step, const std::vector<Datum>& results) const {
  std::vector<PortValue> values;
  for (const Datum& result : results) values.push_back(port_value(result));
  observers->after_operator(step, values);
}

void HostContext::State::run_operator(std::uint32_t number) {
  const Program::Step& step = program().steps[number];
  const HostOperator& described = program().operators[step.detail];
  const ReadyOperator& ready = model.op(step.detail);
  std::vector<std::optional<Datum>> operands;
  std::vector<std::span<const std::byte>> moving;  // memory that later values will overwrite
  for (const std::uint32_t id : described.operands) {
    operands.push_back(id == kNoBuffer ? std::nullopt : std::optional(values.get(id)));
    if (id != kNoBuffer && values.is_moving(id))
      moving.push_back(operands.back()->tensor().bytes());
  }
  std::vector<bool> wanted;
  for (const std::uint32_t id : described.results) wanted.push_back(id != kNoBuffer);
  reference::EvaluateOptions options;
  options.thread_count = runner.thread_count();
  std::vector<Datum> results;
  try {
    const Attributes attributes =
        ready.has_symbols ? ready.bound_attributes(symbols()) : ready.attributes;
    if (ready.kernel != nullptr &&
        run_host_kernel(ready, attributes, operands, wanted, described.results)) {
      if (!observers->after_operator) return;
      for (const std::uint32_t id : described.results)
        results.push_back(id == kNoBuffer ? Datum() : values.get(id));
      return observe(number, results);
    }
    results =
        reference::evaluate_op(*ready.op, attributes, operands, ready.layouts, wanted, options);
  } catch (PlacedError& error) {
    error.locate(described.where);
    throw;
  } catch (const std::bad_alloc&) {
    throw Error("no memory to compute a value", ErrorKind::OutOfMemory).at(described.where);
  }
  if (observers->after_operator) observe(number, results);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k]) values.set(described.results[k], detached(std::move(results.at(k)), moving));
  }
}

// Returns false, without results, if the operator's kernel leaves the call to the reference.
bool HostContext::State::run_host_kernel(const ReadyOperator& ready, const Attributes& attributes,
                                         const std::vector<std::optional<Datum>>& operands,
                                         const std::vector<bool>& wanted,
                                         const std::vector<std::uint32_t>& ids) {
  // Results without a static type have a rank that only the run determines.
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (wanted[k] && ids[k] != kNoBuffer && !model.dtypes()[ids[k]]) return false;
  }
  std::vector<const Tensor*> tensors;
  for (const std::optional<Datum>& operand : operands)
    tensors.push_back(operand ? &operand->tensor() : nullptr);
  const Attributes bound = bind_dynamic_attributes(*ready.op, attributes, tensors);
  std::vector<std::shared_ptr<const Memory>> scratch;
  // Planned outputs may share memory with an input that the kernel still reads.
  std::vector<std::pair<std::uint32_t, Tensor>> apart;
  const auto lies_in_operand = [&](const std::byte* place) {
    return std::ranges::any_of(tensors, [&](const Tensor* tensor) {
      return tensor != nullptr && place >= tensor->bytes().data() &&
             place < tensor->bytes().data() + tensor->byte_size();
    });
  };
  const HostCall call{
      bound,
      tensors,
      wanted,
      runner.thread_count(),
      [&](std::size_t result, const Shape& shape) {
        std::byte* place = values.make_result(ids[result], shape);
        if (!lies_in_operand(place)) return place;
        apart.emplace_back(ids[result], Tensor(*model.dtypes()[ids[result]], shape));
        return apart.back().second.mutable_bytes().data();
      },
      [&](std::uint64_t bytes) { return scratch.emplace_back(values.scratch(bytes))->data(); }};
  if (!ready.kernel(call)) return false;
  for (auto& [id, tensor] : apart) values.set(id, Datum(std::move(tensor)));
  return true;
}

void HostContext::State::run_branch(std::uint32_t number) {
  const BranchStep& branch = program().branches[program().steps[number].detail];
  const Tensor condition = values.tensor(branch.condition);
  if (condition.size() != 1)
    throw Error("if: the condition must be one element")
        .at("node '", program().steps[number].value, "'")
        .got(condition.type());
  const bool takes_first = condition.integer_at(0) != 0;
  if (before_body) before_body();
  values.begin_body(number);
  if (takes_first) {
    run_steps(number + 1, branch.then_end);
  } else {
    run_steps(branch.then_end, branch.else_end);
  }
  for (const BranchStep::Result& each : branch.results) {
    const std::uint32_t out = takes_first ? each.first : each.second;
    if (out != each.result) values.set(each.result, values.kept(out));
  }
}

PortValue port_value(Datum datum) {
  const auto kept = std::make_shared<const Datum>(std::move(datum));
  PortValue value;
  value.object = kept;
  if (!kept->is_tensor()) return value;
  value.shape = kept->tensor().shape();
  if (kept->tensor().dtype() == DType::String) return value;
  value.data = kept->tensor().bytes().data();
  value.owner = kept;
  return value;
}

const Datum& operator_datum(const PortValue& value) {
  TENON_ASSERT(value.object != nullptr, "an operator made the value");
  return *static_cast<const Datum*>(value.object.get());
}

Datum datum_of(const PortValue& value, const Program::Buffer& buffer) {
  if (value.object) return operator_datum(value);
  const DType dtype = element_type_of(buffer);
  std::uint64_t bytes = buffer.element_bytes;
  for (const std::int64_t extent : value.shape) bytes *= static_cast<std::uint64_t>(extent);
  return Tensor::borrow(dtype, value.shape, value.owner, {value.data, bytes});
}

HostContext::HostContext(const HostExecutable& model, KernelRunner& runner)
    : state_(std::make_unique<State>(model, runner)) {}
HostContext::~HostContext() = default;

std::unique_ptr<HostSteps> HostExecutable::make_steps(KernelRunner& runner) const {
  return std::make_unique<HostContext>(*this, runner);
}

std::vector<PortValue> HostContext::run(std::span<const PortValue> inputs,
                                        const Observers& observers) {
  const Program& program = state_->program();
  std::vector<Datum> values;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    values.push_back(datum_of(inputs[k], program.buffers[program.inputs.at(k)]));
  state_->observers = &observers;
  state_->events = observers.events;
  std::vector<PortValue> results;
  for (Datum& result : state_->run(values)) results.push_back(port_value(std::move(result)));
  return results;
}

void HostContext::set_body_callback(std::function<void()> call) {
  state_->before_body = std::move(call);
}

std::uint64_t HostContext::pool_bytes() const { return state_->values.pool_bytes(); }

}  // namespace tenon::inline host
