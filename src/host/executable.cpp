#include "host/executable.h"

#include "host/program_types.h"

namespace tenon::inline host {

std::shared_ptr<const HostOperators> load_operators(const Executable& model) {
  return std::make_shared<const HostExecutable>(model);
}

std::shared_ptr<const Executable> load_executable(Program program) {
  return std::make_shared<const Executable>(std::move(program), load_on_device, load_operators);
}

HostExecutable::HostExecutable(const Executable& model) : model_(model) {
  const Program& p = model_.program();
  for (const HostOperator& made : p.operators) operators_.push_back(ready_operator(made, p));
  segment_at_.resize(p.steps.size(), 0);
  for (std::size_t k = 0; k < model_.segments().size(); ++k)
    segment_at_[model_.segments()[k].begin] = k;
  symbols_of_.resize(p.buffers.size());
  for (std::uint32_t k = 0; k < p.symbols.size(); ++k) {
    if (p.symbols[k].buffer != kNoBuffer) symbols_of_[p.symbols[k].buffer].push_back(k);
  }
  for (const Program::Buffer& buffer : p.buffers) {
    dtypes_.push_back(buffer.element_bytes == 0 ? std::nullopt
                                                : std::optional(element_type_of(buffer)));
  }
  find_last_uses();
}

void HostExecutable::find_last_uses() {
  const Program& p = model_.program();
  const auto count = static_cast<std::uint32_t>(p.steps.size());
  // For each step: the step whose body contains it.
  std::vector<std::uint32_t> around(count, kNoBuffer);
  for (std::uint32_t k = 0; k < count; ++k) {
    for (std::uint32_t inner = k + 1; inner < end_of(p, k); ++inner) around[inner] = k;
  }
  std::vector<std::uint32_t> first(p.buffers.size(), kNoBuffer), last(p.buffers.size(), 0);
  for (std::uint32_t k = 0; k < count; ++k) {
    for (const std::uint32_t id : p.steps[k].buffers) {
      const std::uint32_t root = root_of(p, id);
      if (first[root] == kNoBuffer) first[root] = k;
      last[root] = k;
    }
  }
  inner_symbols_.resize(count);
  for (std::uint32_t symbol = 0; symbol < p.symbols.size(); ++symbol) {
    const std::uint32_t source = p.symbols[symbol].buffer;
    // Inputs are defined before any body, even if a body is their first user.
    if (source == kNoBuffer || first[source] == kNoBuffer ||
        p.buffers[source].place == Program::BufferKind::Input)
      continue;
    for (std::uint32_t k = around[first[source]]; k != kNoBuffer; k = around[k])
      inner_symbols_[k].push_back(symbol);
  }
  std::vector<bool> is_output(p.buffers.size(), false);
  for (const std::uint32_t id : p.outputs) is_output[root_of(p, id)] = true;
  last_uses_.resize(count);
  for (std::uint32_t id = 0; id < p.buffers.size(); ++id) {
    if (p.buffers[id].place != Program::BufferKind::Slot || first[id] == kNoBuffer || is_output[id])
      continue;
    // A value defined outside of a body lives until the last iteration of the body.
    std::uint32_t step = last[id];
    for (std::uint32_t k = step; k != kNoBuffer; k = around[k]) {
      if (k != last[id] && first[id] <= k) step = k;
    }
    last_uses_[step].push_back(id);
  }
}

}  // namespace tenon::inline host
