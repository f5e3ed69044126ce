#include "codegen/assemble.h"

#include "base/error.h"
#include "codegen/constants.h"
#include "codegen/extent_of.h"
#include "codegen/nest_names.h"
#include "program/arena.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::codegen {
namespace {

constexpr std::uint32_t kNever = UINT32_MAX;

class Assembler {
 public:
  Assembler(const TaskList& tasks, const std::string& target_name) : tasks_(tasks) {
    program_.target = target_name;
    for (std::size_t k = 0; k < tasks.symbols.size(); ++k) symbol_ids_[tasks.symbols[k].name] = k;
  }

  Program run() {
    program_.name = tasks_.name;
    for (const TaskList::Symbol& symbol : tasks_.symbols) {
      program_.symbols.push_back({symbol.name, symbol.lo, symbol.hi, symbol.input, symbol.axis});
    }
    for (const TaskList::Buffer& buffer : tasks_.buffers) add_buffer(buffer);
    program_.inputs = tasks_.inputs;
    program_.outputs = tasks_.outputs;
    for (const TaskList::Kernel& kernel : tasks_.kernels) add_kernel(kernel);
    for (const TaskList::Task& task : tasks_.tasks) add_steps(task);
    place_constants(tasks_, program_);
    plan();
    return std::move(program_);
  }

 private:
  Extent extent(const Dim& dim) const { return extent_of(dim, symbol_ids_); }

  void add_buffer(const TaskList::Buffer& from) {
    static const std::map<Life, Program::Place> places = {
        {Life::Input, Program::Place::Input},
        {Life::Output, Program::Place::Output},
        {Life::Constant, Program::Place::Constant},
        {Life::Value, Program::Place::Arena}};
    const auto place = places.find(from.life);
    TENON_ASSERT(place != places.end(), "programs have inputs, outputs, constants and values");
    Program::Buffer buffer;
    buffer.name = from.name;
    buffer.dtype = to_string(from.dtype);
    buffer.element_bytes = static_cast<std::uint32_t>(info(from.dtype).storage_bytes);
    for (const Dim& dim : from.dims) buffer.dims.push_back(extent(dim));
    buffer.place = place->second;
    buffer.offset = from.port;
    program_.buffers.push_back(std::move(buffer));
  }

  void add_kernel(const TaskList::Kernel& from) {
    Program::Kernel kernel;
    kernel.name = from.name;
    kernel.symbol = from.nest.name;
    kernel.scratch_bytes = extent(from.scratch_bytes);
    kernel.threads = from.threads;
    kernel.library = from.library;
    if (from.library.empty()) {
      kernel.checks = {"an index lies outside its tensor", "integer division by zero"};  // by Check
    }
    program_.kernels.push_back(std::move(kernel));
  }

  void add_steps(const TaskList::Task& task) {
    first_steps_.push_back(static_cast<std::uint32_t>(program_.steps.size()));
    for (const TaskList::Way& way : task.ways) {
      for (const TaskList::Call& call : way.calls) {
        Program::Step step;
        step.kernel = call.kernel;
        step.buffers = call.buffers;
        for (const Dim& dim : call.extents) step.extents.push_back(extent(dim));
        step.work = extent(call.work);
        step.candidate = way.candidate;
        step.name = task.name;
        for (const TaskList::Guard& guard : way.when)
          step.when.push_back({guard.symbol, guard.lo, guard.hi});
        step.flops = call.flops;
        step.bytes = call.bytes;
        program_.steps.push_back(std::move(step));
      }
    }
  }

  // Nothing where symbols decide.
  std::optional<std::uint64_t> bytes_of(std::size_t buffer) const {
    std::uint64_t bytes = program_.buffers[buffer].element_bytes;
    for (const Extent& dim : program_.buffers[buffer].dims) {
      if (!dim.is_number()) return std::nullopt;
      bytes *= static_cast<std::uint64_t>(dim.number());
    }
    return bytes;
  }

  void plan() {
    std::vector<std::uint32_t> first(program_.buffers.size(), kNever),
        last(program_.buffers.size(), 0);
    for (std::size_t k = 0; k < program_.steps.size(); ++k) {
      for (const std::uint32_t buffer : program_.steps[k].buffers) {
        first[buffer] = std::min(first[buffer], static_cast<std::uint32_t>(k));
        last[buffer] = static_cast<std::uint32_t>(k);
      }
    }
    program_.is_arena_planned = true;
    std::vector<std::size_t> placed;
    for (std::size_t k = 0; k < program_.buffers.size(); ++k) {
      Program::Buffer& buffer = program_.buffers[k];
      if (buffer.place != Program::Place::Arena) continue;
      buffer.last_step = last[k];
      buffer.first_step = std::min(first[k], last[k]);
      if (first[k] == kNever) buffer.dims = {0};  // a nest keeps it to itself
      if (!bytes_of(k)) program_.is_arena_planned = false;
      placed.push_back(k);
    }
    if (!program_.is_arena_planned) return;
    // By buffer, the one whose memory it lies in: its own, or an operand's.
    std::vector<std::size_t> alone(program_.buffers.size());
    for (std::size_t k = 0; k < alone.size(); ++k) alone[k] = k;
    const std::vector<std::size_t> shared = shared_memory(alone);
    const Layout apart = laid_out(placed, alone), together = laid_out(placed, shared);
    const Layout& best = together.bytes <= apart.bytes ? together : apart;
    for (const std::size_t k : placed) program_.buffers[k].offset = best.offsets[k];
    program_.arena_bytes = best.bytes;
  }

  // A result takes the memory of the operand that a task lets it overwrite, where that is used by
  // no later step and nothing else has taken it.
  std::vector<std::size_t> shared_memory(std::vector<std::size_t> roots) const {
    std::vector<bool> is_taken(roots.size(), false);
    for (std::size_t k = 0; k < tasks_.tasks.size(); ++k) {
      const std::uint32_t begin = first_steps_[k];
      const std::size_t end =
          k + 1 < first_steps_.size() ? first_steps_[k + 1] : program_.steps.size();
      for (const auto& [result, operand] : tasks_.tasks[k].may_share) {
        const Program::Buffer &to = program_.buffers[result], &from = program_.buffers[operand];
        if (to.place != Program::Place::Arena || from.place != Program::Place::Arena) continue;
        if (is_taken[operand] || roots[result] != result || from.last_step >= end ||
            to.first_step < begin)
          continue;
        roots[result] = roots[operand];
        is_taken[operand] = true;
      }
    }
    return roots;
  }

  struct Layout {
    std::vector<std::uint64_t> offsets;  // by buffer
    std::uint64_t bytes = 0;
  };
  Layout laid_out(const std::vector<std::size_t>& placed,
                  const std::vector<std::size_t>& roots) const {
    std::map<std::size_t, std::size_t> request_of;  // by root
    std::vector<ArenaRequest> requests;
    for (const std::size_t k : placed) {
      const Program::Buffer& buffer = program_.buffers[k];
      const auto [found, is_new] = request_of.try_emplace(roots[k], requests.size());
      if (is_new) requests.push_back({0, buffer.first_step, buffer.last_step});
      ArenaRequest& request = requests[found->second];
      request.bytes = std::max(request.bytes, *bytes_of(k));
      request.first = std::min(request.first, buffer.first_step);
      request.last = std::max(request.last, buffer.last_step);
    }
    const ArenaPlan made = plan_arena(requests);
    Layout layout;
    layout.offsets.assign(program_.buffers.size(), 0);
    for (const std::size_t k : placed) layout.offsets[k] = made.offsets[request_of.at(roots[k])];
    layout.bytes = made.bytes;
    return layout;
  }

  const TaskList& tasks_;
  std::map<std::string, std::size_t> symbol_ids_;
  Program program_;
  std::vector<std::uint32_t> first_steps_;  // by task
};

}  // namespace

Program assemble(const TaskList& tasks, const std::string& target_name) {
  return Assembler(tasks, target_name).run();
}

}  // namespace tenon::codegen
