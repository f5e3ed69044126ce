#include "codegen/assemble.h"

#include "base/error.h"
#include "codegen/constants.h"
#include "codegen/extent_of.h"
#include "codegen/nest_names.h"
#include "codegen/overwritten_states.h"
#include "codegen/program_attribute.h"
#include "memory/arena.h"
#include "nests/reports.h"
#include "program/arena.h"
#include "program/in_place.h"

#include <algorithm>
#include <map>
#include <optional>

namespace tenon::codegen {
namespace {

constexpr std::uint32_t kNever = UINT32_MAX;
// Node limit of the placement search that closes gaps left by heuristics: a few milliseconds.
constexpr std::uint64_t kSearchNodes = 20'000;

class Assembler {
 public:
  Assembler(const TaskList& tasks, const std::string& target_name) : tasks_(tasks) {
    program_.target = target_name;
    for (std::size_t k = 0; k < tasks.symbols.size(); ++k) symbol_ids_[tasks.symbols[k].name] = k;
  }

  Program run() {
    program_.name = tasks_.name;
    program_.symbols = tasks_.symbols;
    for (const TaskList::Buffer& buffer : tasks_.buffers) add_buffer(buffer);
    program_.inputs = tasks_.inputs;
    program_.outputs = tasks_.outputs;
    for (const TaskList::Kernel& kernel : tasks_.kernels) add_kernel(kernel);
    for (const TaskList::Task& task : tasks_.tasks) add_steps(task);
    first_steps_.push_back(static_cast<std::uint32_t>(program_.steps.size()));
    for (const TaskList::ConstraintCheck& check : tasks_.checks) add_check(check);
    for (std::size_t k = 0; k < tasks_.tasks.size(); ++k) {
      if (first_steps_[k] < first_steps_[k + 1])
        add_control(tasks_.tasks[k], program_.steps[first_steps_[k]]);
    }
    program_.states = tasks_.states;
    for (Program::State& state : program_.states) {
      state.may_overwrite = state.may_overwrite && may_overwrite(tasks_, state) &&
                            is_read_first(program_, state.input, state.output);
    }
    place_constants(tasks_, program_);
    plan();
    return std::move(program_);
  }

 private:
  Extent extent(const Dim& dim) const { return extent_of(dim, symbol_ids_); }

  void add_buffer(const TaskList::Buffer& from) {
    static const std::map<Lifetime, Program::BufferKind> places = {
        {Lifetime::Input, Program::BufferKind::Input},
        {Lifetime::Output, Program::BufferKind::Output},
        {Lifetime::Constant, Program::BufferKind::Constant},
        {Lifetime::Value, Program::BufferKind::Arena},
        {Lifetime::Sized, Program::BufferKind::Slot}};
    Program::Buffer buffer;
    buffer.name = from.name;
    buffer.dtype = to_string(from.dtype);
    buffer.element_bytes = static_cast<std::uint32_t>(info(from.dtype).storage_bytes);
    for (const Dim& dim : from.dims) buffer.dims.push_back(extent(dim));
    buffer.place = places.at(from.lifetime);
    buffer.offset = from.port;
    if (from.opaque) {
      buffer.dtype = to_string(*from.opaque);
      buffer.element_bytes = 0;
    }
    if (from.view_of) {
      buffer.place = Program::BufferKind::View;
      buffer.offset = *from.view_of;
    }
    program_.buffers.push_back(std::move(buffer));
  }

  void add_kernel(const TaskList::Kernel& from) {
    Program::Kernel kernel;
    kernel.name = from.name;
    kernel.symbol = from.nest.name;
    kernel.scratch_bytes = extent(from.scratch_bytes);
    kernel.threads = from.threads;
    kernel.library = from.library;
    kernel.shared_bytes = from.shared_bytes;
    kernel.cluster = from.cluster;
    for (const TaskList::TensorMap& map : from.maps) {
      kernel.maps.push_back({map.buffer, extent(map.rows), map.extents, map.pitches, map.box,
                             map.steps, map.before, map.places});
    }
    if (nests::may_report(from.nest)) {
      // Indexed by Check.
      kernel.checks = {"an index lies outside its tensor", "integer division by zero"};
    }
    program_.kernels.push_back(std::move(kernel));
  }

  void add_check(const TaskList::ConstraintCheck& check) {
    const bool is_of_body = check.end != kNoBuffer;
    program_.checks.push_back({check.kind, extent(check.a), extent(check.b), check.op, check.where,
                               rule_text(check.kind, check.a, check.b),
                               is_of_body ? first_steps_[check.begin] : 0,
                               is_of_body ? first_steps_[check.end] : UINT32_MAX});
  }

  // Fills a step without kernels. Bodies end at step boundaries.
  void add_control(const TaskList::Task& task, Program::Step& step) {
    if (task.host) {
      HostOperator made{task.host->op->name, {},
                        task.host->operands, task.host->results,
                        task.host->layouts,  task.host->where};
      for (const auto& [name, value] : task.host->attributes)
        made.attributes.push_back(program_attribute(name, value, symbol_ids_));
      step.detail = static_cast<std::uint32_t>(program_.operators.size());
      program_.operators.push_back(std::move(made));
    } else if (task.branch) {
      BranchStep made = *task.branch;
      made.then_end = first_steps_[made.then_end];
      made.else_end = first_steps_[made.else_end];
      step.detail = static_cast<std::uint32_t>(program_.branches.size());
      program_.branches.push_back(std::move(made));
    } else if (task.loop) {
      LoopStep made = *task.loop;
      made.end = first_steps_[made.end];
      step.detail = static_cast<std::uint32_t>(program_.loops.size());
      program_.loops.push_back(std::move(made));
    } else {
      return;
    }
    step.buffers = buffers_of(program_, step);
  }

  void add_steps(const TaskList::Task& task) {
    first_steps_.push_back(static_cast<std::uint32_t>(program_.steps.size()));
    if (task.host || task.branch || task.loop) {
      Program::Step step;
      step.name = task.name;
      step.value = task.value;
      step.kind = task.host     ? Program::StepKind::Host
                  : task.branch ? Program::StepKind::Branch
                                : Program::StepKind::Loop;
      program_.steps.push_back(std::move(step));
      return;
    }
    for (const TaskList::Alternative& alternative : task.alternatives) {
      for (const TaskList::Call& call : alternative.calls) {
        Program::Step step;
        step.kernel = call.kernel;
        step.buffers = call.buffers;
        for (const Dim& dim : call.extents) step.extents.push_back(extent(dim));
        step.work = extent(call.work);
        step.candidate = alternative.candidate;
        step.name = task.name;
        step.value = task.value;
        step.when = alternative.when;
        step.flops = call.flops;
        step.bytes = call.bytes;
        program_.steps.push_back(std::move(step));
      }
    }
  }

  // No value for symbolic extents.
  std::optional<std::uint64_t> bytes_of(std::size_t buffer) const {
    std::uint64_t bytes = program_.buffers[buffer].element_bytes;
    for (const Extent& dim : program_.buffers[buffer].dims) {
      if (!dim.is_number()) return std::nullopt;
      bytes *= static_cast<std::uint64_t>(dim.number());
    }
    return bytes;
  }

  // First and last step that uses each buffer. Values from outside of a loop, and its results, live
  // until its last iteration; outputs of a body live to the end of the body.
  std::pair<std::vector<std::uint32_t>, std::vector<std::uint32_t>> lifetimes() const {
    std::vector<std::uint32_t> first(program_.buffers.size(), kNever),
        last(program_.buffers.size(), 0);
    const auto use = [&](std::uint32_t buffer, std::uint32_t step) {
      if (buffer == kNoBuffer) return;
      const std::uint32_t root = root_of(program_, buffer);
      first[root] = std::min(first[root], step);
      last[root] = std::max(last[root], step);
    };
    for (std::uint32_t k = 0; k < program_.steps.size(); ++k) {
      const Program::Step& step = program_.steps[k];
      if (step.kind == Program::StepKind::Branch) {
        const BranchStep& branch = program_.branches[step.detail];
        use(branch.condition, k);
        for (const BranchStep::Result& each : branch.results) {
          use(each.result, k);
          use(each.result, branch.else_end - 1);
          use(each.first, branch.then_end - 1);
          use(each.second, branch.else_end - 1);
        }
      } else if (step.kind == Program::StepKind::Loop) {
        const LoopStep& loop = program_.loops[step.detail];
        std::vector<std::uint32_t> outs = {loop.next_condition};
        for (const LoopStep::Carried& each : loop.carried) {
          if (!each.is_direct) outs.push_back(each.out);
        }
        for (const LoopStep::Stacked& each : loop.stacked) {
          if (!each.is_direct) outs.push_back(each.out);
        }
        for (const std::uint32_t id : outs) use(id, loop.end - 1);
        for (const std::uint32_t id : step.buffers) {
          if (std::ranges::find(outs, id) != outs.end()) continue;
          use(id, k);
          use(id, loop.end - 1);
        }
      } else {
        for (const std::uint32_t id : step.buffers) use(id, k);
      }
    }
    // Innermost loops first: a lifetime extended to the end of one loop may be extended again by
    // the loop around it.
    for (std::uint32_t k = static_cast<std::uint32_t>(program_.steps.size()); k-- > 0;) {
      if (program_.steps[k].kind != Program::StepKind::Loop) continue;
      const std::uint32_t end = program_.loops[program_.steps[k].detail].end;
      for (std::size_t id = 0; id < first.size(); ++id) {
        if (first[id] <= k && last[id] > k && last[id] < end) last[id] = end - 1;
      }
    }
    return {std::move(first), std::move(last)};
  }

  void plan() {
    const auto [first, last] = lifetimes();
    program_.is_arena_planned = true;
    std::vector<std::size_t> placed;
    for (std::size_t k = 0; k < program_.buffers.size(); ++k) {
      Program::Buffer& buffer = program_.buffers[k];
      if (buffer.place != Program::BufferKind::Arena && buffer.place != Program::BufferKind::Slot)
        continue;
      buffer.last_step = last[k];
      buffer.first_step = std::min(first[k], last[k]);
      if (buffer.place == Program::BufferKind::Slot) continue;
      if (first[k] == kNever) buffer.dims = {0};  // Fused away: only scratch of a nest.
      if (!bytes_of(k)) program_.is_arena_planned = false;
      placed.push_back(k);
    }
    if (!program_.is_arena_planned) return;
    // By buffer: the buffer whose memory it uses, itself or an operand.
    std::vector<std::size_t> alone(program_.buffers.size());
    for (std::size_t k = 0; k < alone.size(); ++k) alone[k] = k;
    const std::vector<std::size_t> shared = shared_memory(alone);
    const ArenaLayout apart = laid_out(placed, alone), together = laid_out(placed, shared);
    const ArenaLayout& best = together.bytes <= apart.bytes ? together : apart;
    for (const std::size_t k : placed) program_.buffers[k].offset = best.offsets[k];
    program_.arena_bytes = best.bytes;
  }

  // In-place results: a result takes the memory of an operand that its task may overwrite if no
  // later step uses the operand and no other result has taken it.
  std::vector<std::size_t> shared_memory(std::vector<std::size_t> roots) const {
    std::vector<bool> is_taken(roots.size(), false);
    for (std::size_t k = 0; k < tasks_.tasks.size(); ++k) {
      const std::uint32_t begin = first_steps_[k], end = first_steps_[k + 1];
      for (const auto& [result, operand] : tasks_.tasks[k].may_share) {
        const Program::Buffer &to = program_.buffers[result], &from = program_.buffers[operand];
        if (to.place != Program::BufferKind::Arena || from.place != Program::BufferKind::Arena)
          continue;
        if (is_taken[operand] || roots[result] != result || from.last_step >= end ||
            to.first_step < begin)
          continue;
        roots[result] = roots[operand];
        is_taken[operand] = true;
      }
    }
    return roots;
  }

  struct ArenaLayout {
    std::vector<std::uint64_t> offsets;  // By buffer.
    std::uint64_t bytes = 0;
  };
  ArenaLayout laid_out(const std::vector<std::size_t>& placed,
                       const std::vector<std::size_t>& roots) const {
    std::map<std::size_t, std::size_t> request_of;  // By root.
    std::vector<memory::ArenaBuffer> requests;
    for (const std::size_t k : placed) {
      const Program::Buffer& buffer = program_.buffers[k];
      const auto [found, is_new] = request_of.try_emplace(roots[k], requests.size());
      if (is_new) requests.push_back({0, buffer.first_step, buffer.last_step + 1, {}});
      memory::ArenaBuffer& request = requests[found->second];
      request.bytes = std::max(request.bytes, *bytes_of(k));
      request.begin = std::min(request.begin, buffer.first_step);
      request.end = std::max(request.end, buffer.last_step + 1);
    }
    memory::PlaceOptions options;
    options.alignment = kArenaAlignment;
    options.node_limit = kSearchNodes;
    const memory::Arena made = memory::place(requests, options);
    ArenaLayout layout;
    layout.offsets.assign(program_.buffers.size(), 0);
    for (const std::size_t k : placed) layout.offsets[k] = made.offsets[request_of.at(roots[k])];
    layout.bytes = made.bytes;
    return layout;
  }

  const TaskList& tasks_;
  std::map<std::string, std::size_t> symbol_ids_;
  Program program_;
  std::vector<std::uint32_t> first_steps_;  // By task.
};

}  // namespace

Program assemble(const TaskList& tasks, const std::string& target_name) {
  return Assembler(tasks, target_name).run();
}

}  // namespace tenon::codegen
