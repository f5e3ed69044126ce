#include "runtime/state_values.h"

#include "base/error.h"
#include "base/text.h"
#include "runtime/executable.h"

#include <utility>

namespace tenon::inline runtime {
namespace {

bool is_shared(const StateValues::Value& value) { return value.memory.use_count() > 1; }

}  // namespace

StateValues::StateValues(std::shared_ptr<const Executable> model)
    : model_(std::move(model)), slots_(model_->program().states.size()) {
  // Host steps take their operands from host memory.
  const bool is_remote = model_->device() != nullptr && model_->program().is_kernel_only();
  memory_ = is_remote ? model_->device()->state_memory() : std::make_shared<StateMemory>();
}

const Program::State& StateValues::described(std::size_t state) const {
  return model_->program().states.at(state);
}

const Program::Buffer& StateValues::port(std::size_t state) const {
  const Program& program = model_->program();
  return program.buffers[program.inputs[described(state).input]];
}

std::size_t StateValues::find(std::string_view name) const {
  std::vector<std::string> known;
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    if (port(k).name == name) return k;
    known.push_back(port(k).name);
  }
  Error error(concat("no state is called '", name, "'"), ErrorKind::Usage);
  error.at("program '", model_->program().name, "'");
  throw known.empty() ? error : error.hint(suggest_name(std::string(name), known));
}

std::uint64_t StateValues::bytes_of(std::size_t state,
                                    const std::vector<std::int64_t>& shape) const {
  std::uint64_t bytes = port(state).element_bytes;
  for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
  return bytes;
}

const StateValues::Value& StateValues::previous(std::size_t state) const {
  static const Value nothing;
  return slots_[state].has_previous ? slots_[state].other : nothing;
}

StateValues::Value StateValues::own_copy(const Value& value) const {
  Value copy{value.shape, memory_->allocate(value.bytes), value.bytes};
  memory_->copy(copy.memory.get(), value.memory.get(), value.bytes);
  return copy;
}

void StateValues::write(std::size_t state, std::vector<std::int64_t> shape, const void* data) {
  Slot& slot = slots_[state];
  const std::uint64_t bytes = bytes_of(state, shape);
  if (slot.is_bound && slot.now.bytes != bytes) slot.is_bound = false;
  if (!slot.is_bound && (!slot.now.memory || is_shared(slot.now) || slot.now.bytes != bytes))
    slot.now.memory = memory_->allocate(bytes);
  slot.now.bytes = bytes;
  slot.now.shape = std::move(shape);
  slot.has_previous = false;
  memory_->copy(slot.now.memory.get(), data, bytes);
}

void StateValues::bind(std::size_t state, std::vector<std::int64_t> shape,
                       std::shared_ptr<std::byte> memory) {
  const std::uint64_t bytes = bytes_of(state, shape);
  slots_[state] = {{std::move(shape), std::move(memory), bytes}, {}, true};
}

void StateValues::read(const Value& value, void* to) const {
  memory_->copy(to, value.memory.get(), value.bytes);
}

void StateValues::start(std::size_t state, const std::vector<std::int64_t>& shape) {
  Slot& slot = slots_[state];
  const Program& program = model_->program();
  const Program::State& made = described(state);
  if (slot.now.memory) return;
  if (made.initial == kNoBuffer) {
    if (!made.starts_with_zeros) {
      throw Error(concat("state '", port(state).name, "' has no value before the first run"),
                  ErrorKind::Usage)
          .at("program '", program.name, "'")
          .hint("write it first");
    }
    const std::uint64_t bytes = bytes_of(state, shape);
    slot.now = {shape, memory_->allocate(bytes), bytes};
    memory_->fill_zeros(slot.now.memory.get(), bytes);
    return;
  }
  const Program::Buffer& constant = program.buffers[made.initial];
  slot.now.shape.clear();
  for (const Extent& dim : constant.dims) slot.now.shape.push_back(dim.number());
  slot.now.bytes = bytes_of(state, slot.now.shape);
  std::atomic<bool> is_altered = false;
  model_->compare(constant.offset, constant.offset + slot.now.bytes, is_altered);
  if (is_altered) throw altered_constants(program);
  slot.now.memory = memory_->allocate(slot.now.bytes);
  memory_->copy(slot.now.memory.get(), program.constants.get() + constant.offset, slot.now.bytes);
}

void StateValues::reset() {
  for (Slot& slot : slots_) slot = {};
}

void StateValues::share(const StateValues& from) {
  TENON_ASSERT(from.count() == count(), "both programs have these states");
  for (std::size_t k = 0; k < slots_.size(); ++k) {
    const Slot& source = from.slots_[k];
    slots_[k] = {};
    if (!source.now.memory) continue;
    slots_[k].now = source.is_bound ? own_copy(source.now) : source.now;
  }
}

std::uint64_t StateValues::bytes() const {
  std::uint64_t bytes = 0;
  for (const Slot& slot : slots_) bytes += slot.now.bytes;
  return bytes;
}

std::uint64_t StateValues::second_bytes() const {
  std::uint64_t bytes = 0;
  for (std::size_t k = 0; k < slots_.size(); ++k)
    bytes += described(k).may_overwrite ? 0 : slots_[k].now.bytes;
  return bytes;
}

void StateValues::own(std::size_t state) {
  Slot& slot = slots_[state];
  if (described(state).may_overwrite && !slot.is_bound && is_shared(slot.now))
    slot.now = own_copy(slot.now);
}

std::byte* StateValues::next(std::size_t state, const std::vector<std::int64_t>& shape,
                             std::uint64_t bytes) {
  Slot& slot = slots_[state];
  slot.is_in_place = described(state).may_overwrite && shape == slot.now.shape;
  slot.has_previous = false;
  if (slot.is_in_place) {
    own(state);
    slot.other = {};
    return slot.now.memory.get();
  }
  if (!slot.other.memory || is_shared(slot.other) || slot.other.bytes != bytes)
    slot.other.memory = memory_->allocate(bytes);
  slot.other.bytes = bytes;
  return slot.other.memory.get();
}

void StateValues::advance(std::size_t state, const std::vector<std::int64_t>& shape) {
  Slot& slot = slots_[state];
  if (slot.is_in_place) return;
  slot.other.shape = shape;
  if (!slot.is_bound) {
    std::swap(slot.now, slot.other);
    slot.has_previous = true;
  } else {
    advance(state, Value(slot.other));
  }
}

void StateValues::advance(std::size_t state, Value result) {
  Slot& slot = slots_[state];
  if (result.memory == slot.now.memory) return;
  if (!slot.is_bound) {
    slot.now = std::move(result);
    return;
  }
  if (result.shape != slot.now.shape) {
    throw Error(concat("state '", port(state).name, "' does not fit the memory that holds it"),
                ErrorKind::Usage)
        .at("program '", model_->program().name, "'")
        .hint("let the context hold a state whose shape changes");
  }
  memory_->copy(slot.now.memory.get(), result.memory.get(), result.bytes);
}

}  // namespace tenon::inline runtime
