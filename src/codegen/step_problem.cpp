#include "codegen/step_problem.h"

#include "base/error.h"
#include "program/arena.h"
#include "program/in_place.h"
#include "program/library_call.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>

namespace tenon::codegen {
namespace {

constexpr std::uint32_t kNoValue = static_cast<std::uint32_t>(-1);
// Share of peak that large kernels reach.
constexpr double kReached = 0.6;
constexpr std::uint64_t kPage = 4096;

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::optional<std::uint64_t> known_bytes(const TaskList::Buffer& buffer) {
  const Dim count = product(buffer.dims);
  if (!count.is_constant()) return std::nullopt;
  return static_cast<std::uint64_t>(count.constant()) *
         static_cast<std::uint64_t>(info(buffer.dtype).storage_bytes);
}

class ProblemBuilder {
 public:
  ProblemBuilder(const TaskList& tasks, const TargetFacts& facts, int threads)
      : tasks_(tasks),
        facts_(facts),
        reached_units_(kReached * std::max(1, threads)),
        value_of_(tasks.buffers.size(), kNoValue) {}

  std::optional<StepProblem> run() {
    made_.problem.name = tasks_.name;
    for (const TaskList::Buffer& buffer : tasks_.buffers) {
      if (buffer.opaque || buffer.lifetime == Lifetime::Sized || !known_bytes(buffer))
        return std::nullopt;
      if (buffer.lifetime == Lifetime::Value || buffer.view_of) continue;
      made_.problem.fixed_bytes += rounded(*known_bytes(buffer), kArenaAlignment);
    }
    std::vector<CallUses> calls;
    for (const TaskList::Task& task : tasks_.tasks) {
      using Kind = TaskList::Task::Kind;  // Copies are kernels, too.
      if ((task.kind != Kind::Compute && task.kind != Kind::Copy) || task.alternatives.size() != 1)
        return std::nullopt;
      for (const TaskList::Call& call : task.alternatives.front().calls)
        calls.push_back(uses_of(task, call));
    }
    add_items(calls);
    memory::verify(made_.problem);
    return std::move(made_);
  }

 private:
  struct CallUses {
    const TaskList::Task& task;
    const TaskList::Call& call;
    std::set<std::uint32_t> reads = {}, writes = {};
  };

  CallUses uses_of(const TaskList::Task& task, const TaskList::Call& call) const {
    CallUses uses{task, call};
    // A library function has no nest; it is the only call of its task.
    if (!tasks_.kernels[call.kernel].library.empty()) {
      uses.reads.insert(task.reads.begin(), task.reads.end());
      uses.writes.insert(task.writes.begin(), task.writes.end());
      return uses;
    }
    std::size_t argument = 0;
    for (const nests::NestBuffer& buffer : tasks_.kernels[call.kernel].nest.buffers) {
      if (buffer.storage == nests::StorageClass::Scratch) continue;
      const std::uint32_t id = call.buffers[argument++];
      (buffer.storage == nests::StorageClass::Result ? uses.writes : uses.reads).insert(id);
    }
    return uses;
  }

  // Rate of the operand type of a library function or tensor-core kernel.
  double flops_per_s(const TaskList::Call& call) const {
    const TaskList::Kernel& kernel = tasks_.kernels[call.kernel];
    if (!kernel.library.empty()) {
      const LibraryCall function = parse_library_call(kernel.library);
      return reached_units_ *
             facts_.flops_per_s(*parse_dtype(function.dtype), function.allows_tf32);
    }
    if (kernel.maps.empty()) return reached_units_ * facts_.flops_per_s(DType::F32);
    // Operands loaded through tensor maps are for tensor cores, which compute f32 as tf32.
    const std::uint32_t matrix = call.buffers[kernel.maps.front().buffer];
    return reached_units_ * facts_.flops_per_s(tasks_.buffers[matrix].dtype, true);
  }

  // One item per call, so that intermediate values of a task have short lifetimes. Calls that write
  // the same buffer form one item with those between them: a fill and its update, the parts of a
  // concatenation.
  void add_items(std::span<const CallUses> calls) {
    std::map<std::uint32_t, std::size_t> last_write;
    for (std::size_t k = 0; k < calls.size(); ++k) {
      for (const std::uint32_t id : calls[k].writes) last_write[id] = k;
    }
    for (std::size_t begin = 0; begin < calls.size();) {
      std::size_t end = begin + 1;
      for (std::size_t k = begin; k < end; ++k) {
        for (const std::uint32_t id : calls[k].writes) end = std::max(end, last_write.at(id) + 1);
      }
      add_item(calls.subspan(begin, end - begin));
      begin = end;
    }
  }

  void add_item(std::span<const CallUses> calls) {
    const TaskList::Task& task = calls.front().task;
    memory::Item item;
    item.name = task.name;
    item.number = static_cast<std::uint32_t>(made_.steps.size());
    // Kernels are pure functions: dropout, too, derives its random numbers from a key.
    item.may_repeat = true;
    double seconds = 0;
    std::set<std::uint32_t> reads, writes;
    std::vector<std::uint32_t> steps;
    for (const CallUses& uses : calls) {
      seconds += facts_.start_s + std::max(uses.call.flops / flops_per_s(uses.call),
                                           uses.call.bytes / facts_.memory().bytes_per_s);
      for (const std::uint32_t id : uses.reads) {
        if (!writes.contains(id)) reads.insert(id);
      }
      writes.insert(uses.writes.begin(), uses.writes.end());
      steps.push_back(step_count_++);
    }
    for (const std::uint32_t id : reads) {
      if (value_of_[id] != kNoValue) item.reads.push_back(value_of_[id]);
    }
    for (const std::uint32_t id : writes) {
      value_of_[id] = static_cast<std::uint32_t>(made_.buffers.size());
      made_.buffers.push_back(id);
      item.makes.push_back(value_of_[id]);
      const TaskList::Buffer& buffer = tasks_.buffers[id];
      const bool is_output = buffer.lifetime != Lifetime::Value;
      const std::uint64_t bytes = is_output ? 0 : rounded(*known_bytes(buffer), kArenaAlignment);
      made_.problem.values.push_back(
          {buffer.name.empty() ? task.value : buffer.name, bytes, is_output, !is_output});
    }
    for (const auto& [result, operand] : task.may_share) {
      if (calls.size() > 1 || !writes.contains(result) || !reads.contains(operand)) continue;
      const std::uint32_t to = value_of_[result], from = value_of_[operand];
      if (from == kNoValue || tasks_.buffers[result].lifetime != Lifetime::Value ||
          tasks_.buffers[operand].lifetime != Lifetime::Value)
        continue;
      item.may_share.emplace_back(to, from);
    }
    item.alternatives.push_back({seconds, 0});
    made_.steps.push_back(std::move(steps));
    made_.problem.items.push_back(std::move(item));
  }

  const TaskList& tasks_;
  const TargetFacts& facts_;
  double reached_units_;  // Equivalent number of units at peak rate.
  StepProblem made_;
  std::vector<std::uint32_t> value_of_;  // By buffer.
  std::uint32_t step_count_ = 0;
};

class Carrier {
 public:
  Carrier(const Program& program, const StepProblem& described, const memory::Plan& plan)
      : from_(program), described_(described), plan_(plan), program_(program) {}

  Program run(std::vector<std::uint32_t>* step_items) {
    program_.steps.clear();
    place_instances();
    current_.assign(described_.buffers.size(), kNoValue);
    file_offset_.assign(described_.buffers.size(), UINT64_MAX);
    for (std::uint32_t e = 0; e < plan_.events.size(); ++e) {
      const memory::Event& event = plan_.events[e];
      if (event.kind == memory::Event::Kind::Run) {
        add_steps(e, described_.problem.items[event.index], step_items);
      } else {
        copy(e, event);
      }
    }
    for (Program::Transfer& transfer : program_.transfers)
      transfer.end_step = std::min(transfer.end_step, step_number());
    find_lifetimes();
    program_.arena_bytes = rounded(plan_.arena_bytes, kArenaAlignment);
    program_.is_arena_planned = true;
    return std::move(program_);
  }

 private:
  std::uint32_t step_number() const { return static_cast<std::uint32_t>(program_.steps.size()); }

  // Creates one buffer per instance of a value. The first instance keeps the program's buffer.
  void place_instances() {
    std::vector<char> is_there(from_.buffers.size(), 0);
    for (const memory::ArenaBlock& storage : plan_.blocks) {
      for (const memory::Instance& instance : storage.instances) {
        const std::uint32_t id = described_.buffers[instance.value];
        if (from_.buffers[id].place !=
            Program::BufferKind::Arena) {  // Outputs stay in their buffers.
          instances_[{instance.value, instance.made_at}] = id;
          continue;
        }
        std::uint32_t buffer = id;
        if (is_there[id] != 0) {
          buffer = static_cast<std::uint32_t>(program_.buffers.size());
          program_.buffers.push_back(from_.buffers[id]);
        }
        is_there[id] = 1;
        program_.buffers[buffer].offset = storage.offset;
        instances_[{instance.value, instance.made_at}] = buffer;
      }
    }
  }

  void add_steps(std::uint32_t event, const memory::Item& item,
                 std::vector<std::uint32_t>* step_items) {
    std::map<std::uint32_t, std::uint32_t> now;  // By the program's original buffer.
    for (const std::uint32_t v : item.reads) {
      TENON_ASSERT(current_[v] != kNoValue, "a plan makes a value before it reads it");
      now[described_.buffers[v]] = current_[v];
      wait_for(v);
    }
    for (const std::uint32_t v : item.makes) {
      current_[v] = instances_.at({v, event});
      now[described_.buffers[v]] = current_[v];
    }
    for (const std::uint32_t number : described_.steps[item.number]) {
      Program::Step step = from_.steps[number];
      for (std::uint32_t& id : step.buffers) {
        if (const auto found = now.find(id); found != now.end()) id = found->second;
      }
      program_.steps.push_back(std::move(step));
      if (step_items != nullptr) step_items->push_back(item.number);
    }
  }

  void copy(std::uint32_t event, const memory::Event& what) {
    const std::uint32_t v = what.index;
    if (what.kind == memory::Event::Kind::Free) {
      program_.transfers[leaving_.at(v)].end_step = step_number();
      return;
    }
    Program::Transfer transfer;
    transfer.is_out = what.kind == memory::Event::Kind::Out;
    transfer.begin_step = step_number();
    transfer.end_step = kNoValue;
    if (transfer.is_out) {
      leaving_[v] = program_.transfers.size();
      if (file_offset_[v] == UINT64_MAX) {
        file_offset_[v] = file_bytes_;
        file_bytes_ += rounded(described_.problem.values[v].bytes, kPage);
      }
    } else {
      current_[v] = instances_.at({v, event});
      returning_[v] = program_.transfers.size();
    }
    transfer.buffer = current_[v];
    transfer.file_offset = file_offset_[v];
    program_.transfers.push_back(transfer);
  }

  // Makes the current step wait for a pending copy back.
  void wait_for(std::uint32_t value) {
    const auto found = returning_.find(value);
    if (found == returning_.end()) return;
    Program::Transfer& transfer = program_.transfers[found->second];
    transfer.end_step = std::min(transfer.end_step, step_number());
    returning_.erase(found);
  }

  void find_lifetimes() {
    std::vector<std::uint32_t> first(program_.buffers.size(), kNoValue),
        last(program_.buffers.size(), 0);
    const auto use = [&](std::uint32_t buffer, std::uint32_t step) {
      first[buffer] = std::min(first[buffer], step);
      last[buffer] = std::max(last[buffer], step);
    };
    for (std::uint32_t k = 0; k < program_.steps.size(); ++k) {
      for (const std::uint32_t id : program_.steps[k].buffers) use(id, k);
    }
    for (const Program::Transfer& transfer : program_.transfers) {
      use(transfer.buffer, transfer.begin_step);
      use(transfer.buffer, transfer.is_out ? transfer.end_step - 1 : transfer.end_step);
    }
    for (std::size_t k = 0; k < program_.buffers.size(); ++k) {
      Program::Buffer& buffer = program_.buffers[k];
      if (buffer.place != Program::BufferKind::Arena) continue;
      buffer.last_step = last[k];
      buffer.first_step = std::min(first[k], last[k]);
      if (first[k] == kNoValue) buffer.dims = {0}, buffer.offset = 0;
    }
  }

  const Program& from_;
  const StepProblem& described_;
  const memory::Plan& plan_;
  Program program_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      instances_;                                             // By value and event: buffers.
  std::vector<std::uint32_t> current_;                        // By value: a buffer.
  std::map<std::uint32_t, std::size_t> leaving_, returning_;  // By value: transfers.
  std::vector<std::uint64_t> file_offset_;                    // By value.
  std::uint64_t file_bytes_ = 0;
};

}  // namespace

std::optional<StepProblem> step_problem(const TaskList& tasks, const TargetFacts& facts,
                                        int threads) {
  return ProblemBuilder(tasks, facts, threads).run();
}

Program apply_plan(const Program& program, const StepProblem& described, const memory::Plan& plan,
                   std::vector<std::uint32_t>* step_items) {
  Program made = Carrier(program, described, plan).run(step_items);
  for (Program::State& state : made.states) {
    state.may_overwrite = state.may_overwrite && is_read_first(made, state.input, state.output);
  }
  return made;
}

}  // namespace tenon::codegen
