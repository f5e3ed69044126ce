#include "runtime/cuda/ports.h"

#include <algorithm>

namespace tenon::inline runtime::cuda {
namespace {

constexpr Address kPortAlignment = 256;  // alignment that kernels and libraries were selected for

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kPortAlignment - 1) / kPortAlignment * kPortAlignment;
}

}  // namespace

PortBuffers::~PortBuffers() {
  if (callers_work_ != nullptr) driver().destroy_event(callers_work_);
}

// Allocates the ports one after another.
void PortBuffers::place(const BoundShapes& shapes, const Segment& segment, const Program& program) {
  std::uint64_t total = 0;
  const bool has_states = program.is_kernel_only();
  const auto is_state = [&](std::uint32_t id) {
    return has_states && std::ranges::any_of(program.states, [&](const Program::State& state) {
             return program.inputs[state.input] == id || program.outputs[state.output] == id;
           });
  };
  const auto placed = [&](const std::vector<std::uint32_t>& buffers) {
    std::vector<Port> ports;
    for (const std::uint32_t id : buffers) {
      Port& port = ports.emplace_back();
      port.own = total;
      port.bytes = shapes.bytes_of(id);
      port.is_state = is_state(id);
      if (!port.is_state) total += aligned(port.bytes);
    }
    return ports;
  };
  inputs_ = placed(segment.reads);
  outputs_ = placed(segment.writes);
  memory_.allocate(std::max<std::uint64_t>(total, kPortAlignment), "inputs and outputs");
  for (auto* ports : {&inputs_, &outputs_}) {
    for (Port& port : *ports) port.address = port.own += memory_.address();
  }
}

bool PortBuffers::observe(std::span<const void* const> inputs, std::span<void* const> outputs,
                          Stream steps) {
  const Driver& cuda = driver();
  bool is_any_on_device = false, is_changed = false;
  for (std::size_t k = 0; k < inputs_.size() + outputs_.size(); ++k) {
    const bool is_input = k < inputs_.size();
    const void* given = is_input ? inputs[k] : outputs[k - inputs_.size()];
    Port& port = is_input ? inputs_[k] : outputs_[k - inputs_.size()];
    const auto address = reinterpret_cast<Address>(given);
    if (port.is_state) {
      is_changed = is_changed || address != port.address;
      port.address = address;
      continue;
    }
    port.given = given != nullptr && port.bytes > 0 ? cuda.kind_of(given) : MemoryKind::Ordinary;
    const bool is_on_device = port.given == MemoryKind::Device;
    is_any_on_device = is_any_on_device || is_on_device;
    const bool is_usable = is_on_device && address % kPortAlignment == 0;
    const Address wanted = is_usable ? address : port.own;
    is_changed = is_changed || wanted != port.address;
    port.address = wanted;
  }
  if (!is_any_on_device) return is_changed;
  constexpr unsigned kWithoutTimes = 2;
  if (callers_work_ == nullptr)
    cuda.require(cuda.create_event(&callers_work_, kWithoutTimes), "making an event");
  cuda.require(cuda.record(callers_work_, nullptr), "waiting for the caller's work");
  cuda.require(cuda.wait_event(steps, callers_work_, 0), "waiting for the caller's work");
  return is_changed;
}

std::vector<Address> PortBuffers::addresses() const {
  std::vector<Address> addresses;
  for (const auto* ports : {&inputs_, &outputs_}) {
    for (const Port& port : *ports) addresses.push_back(port.address);
  }
  return addresses;
}

void PortBuffers::begin_inputs(std::span<const void* const> inputs, Stream steps) {
  const Driver& cuda = driver();
  std::vector<std::size_t> taken;  // inputs that need a copy
  std::uint64_t staged = 0;
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const Port& port = inputs_[k];
    if (port.bytes == 0 || inputs[k] == nullptr ||
        reinterpret_cast<Address>(inputs[k]) == port.address)
      continue;
    taken.push_back(k);
    if (port.given == MemoryKind::Ordinary) staged += Staging::room(port.bytes);
  }
  in_.reserve(staged);
  for (const std::size_t k : taken) {
    const Port& port = inputs_[k];
    if (port.given == MemoryKind::Ordinary) {
      in_.to_device(port.address, inputs[k], port.bytes, steps);
      continue;
    }
    const auto source = reinterpret_cast<Address>(inputs[k]);
    cuda.require(port.given == MemoryKind::Device
                     ? cuda.copy(port.address, source, port.bytes, steps)
                     : cuda.to_device(port.address, inputs[k], port.bytes, steps),
                 "copying an input");
  }
}

void PortBuffers::begin_outputs(std::span<void* const> outputs, Address report, Stream steps) {
  const Driver& cuda = driver();
  std::vector<std::size_t> wanted;
  std::uint64_t staged = Staging::room(sizeof report_);
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const Port& port = outputs_[k];
    if (port.bytes == 0 || outputs[k] == nullptr ||
        reinterpret_cast<Address>(outputs[k]) == port.address)
      continue;
    wanted.push_back(k);
    if (port.given == MemoryKind::Ordinary) staged += Staging::room(port.bytes);
  }
  out_.reserve(staged);
  out_.to_host(&report_, report, sizeof report_, steps);
  for (const std::size_t k : wanted) {
    const Port& port = outputs_[k];
    if (port.given == MemoryKind::Ordinary) {
      if (out_.has_room_for(port.bytes)) {
        out_.to_host(outputs[k], port.address, port.bytes, steps);
      } else {
        late_.push_back({outputs[k], k});
      }
      continue;
    }
    const auto target = reinterpret_cast<Address>(outputs[k]);
    cuda.require(port.given == MemoryKind::Device
                     ? cuda.copy(target, port.address, port.bytes, steps)
                     : cuda.to_host(outputs[k], port.address, port.bytes, steps),
                 "copying an output");
  }
}

std::int64_t PortBuffers::finish(Stream steps) {
  const Driver& cuda = driver();
  for (const auto& [target, output] : late_)
    out_.to_host(target, outputs_[output].address, outputs_[output].bytes, steps);
  late_.clear();
  out_.finish();
  cuda.require(cuda.synchronise(steps), "copying outputs");
  in_.abandon();  // the inputs have arrived
  return report_;
}

void PortBuffers::abandon() {
  in_.abandon();
  out_.abandon();
  late_.clear();
}

void PortBuffers::fetch(std::size_t port, void* target, Stream steps) const {
  const Driver& cuda = driver();
  if (at(port).bytes > 0)
    cuda.require(cuda.to_host(target, at(port).address, at(port).bytes, steps),
                 "copying an output");
  cuda.require(cuda.synchronise(steps), "copying an output");
}

}  // namespace tenon::inline runtime::cuda
