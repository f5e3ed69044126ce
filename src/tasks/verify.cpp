#include "base/error.h"
#include "tasks/task_list.h"

#include <algorithm>

namespace tenon::inline tasks {
namespace {

class TaskListVerifier {
 public:
  explicit TaskListVerifier(const TaskList& tasks)
      : tasks_(tasks), is_written_(tasks.buffers.size(), false) {}

  void run() {
    for (std::size_t k = 0; k < tasks_.buffers.size(); ++k) check_buffer(k);
    for (const auto* ports : {&tasks_.inputs, &tasks_.outputs}) {
      const bool is_input = ports == &tasks_.inputs;
      for (std::size_t k = 0; k < ports->size(); ++k) {
        const std::uint32_t id = (*ports)[k];
        require(id < tasks_.buffers.size(), "a port is a buffer", "the list");
        const TaskList::Buffer& buffer = tasks_.buffers[id];
        const bool is_own =
            buffer.lifetime == (is_input ? Lifetime::Input : Lifetime::Output) && buffer.port == k;
        // A run-time-sized buffer, or one that exists before the run, is returned as is.
        const bool is_given = !is_input && !is_own && buffer.lifetime != Lifetime::Output &&
                              tasks_.buffers[root_of(tasks_, id)].lifetime != Lifetime::Value;
        require(is_own || is_given, "a port is a buffer of its kind and number", "the list");
      }
    }
    for (const TaskList::Symbol& symbol : tasks_.symbols) {
      const bool is_bound =
          symbol.buffer == kNoBuffer || (symbol.buffer < tasks_.buffers.size() &&
                                         symbol.axis < tasks_.buffers[symbol.buffer].dims.size());
      require(is_bound, "a symbol is an extent of a buffer", concat("symbol ", symbol.name));
    }
    check_tasks(0, static_cast<std::uint32_t>(tasks_.tasks.size()));
    for (const std::uint32_t output : tasks_.outputs)
      require_there(output, "an output is written", place(output));
  }

 private:
  static void require(bool holds, std::string_view what, const std::string& where) {
    if (!holds) throw InternalError("tasks", concat(where, ": ", what), __FILE__, __LINE__);
  }
  std::string place(std::uint32_t id) const {
    return concat("buffer %", id, " '", tasks_.buffers[id].name, "'");
  }

  void check_buffer(std::size_t k) {
    const TaskList::Buffer& buffer = tasks_.buffers[k];
    const auto id = static_cast<std::uint32_t>(k);
    if (buffer.view_of) require(*buffer.view_of < k, "a view is of a buffer before it", place(id));
    is_written_[k] = buffer.lifetime == Lifetime::Input || buffer.lifetime == Lifetime::Constant;
    if (!buffer.form) return;
    require(buffer.form->source < k, "a form is made of a buffer before it", place(id));
    require(tasks_.buffers[buffer.form->source].lifetime == Lifetime::Constant,
            "a form is made of a constant", place(id));
  }

  // A buffer without elements needs no writer.
  void require_there(std::uint32_t id, const std::string& what, const std::string& where) const {
    require(id < tasks_.buffers.size(), "it reads a buffer that there is", where);
    const TaskList::Buffer& buffer = tasks_.buffers[id];
    const bool is_empty = !buffer.opaque && product(buffer.dims) == Dim(0);
    require(is_written_[root_of(tasks_, id)] || is_empty, what, where);
  }

  void check_tasks(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t k = begin; k < end; k = end_of(tasks_, k)) {
      const TaskList::Task& task = tasks_.tasks[k];
      const std::string where = concat("task '", task.name, "'");
      check_task(task);
      require(end_of(tasks_, k) > k && end_of(tasks_, k) <= end, "bodies follow their task", where);
      if (task.branch) {
        require(task.branch->then_end > k && task.branch->then_end <= task.branch->else_end,
                "bodies follow their task", where);
        const auto gives = [&](auto member) {
          std::vector<std::uint32_t> outs;
          for (const BranchStep::Result& each : task.branch->results) outs.push_back(each.*member);
          return outs;
        };
        check_body(k + 1, task.branch->then_end, gives(&BranchStep::Result::first), where);
        check_body(task.branch->then_end, task.branch->else_end, gives(&BranchStep::Result::second),
                   where);
      }
      if (task.loop) {
        std::vector<std::uint32_t> outs;
        if (task.loop->next_condition != kNoBuffer) outs.push_back(task.loop->next_condition);
        for (const LoopStep::Carried& each : task.loop->carried) outs.push_back(each.out);
        for (const LoopStep::Stacked& each : task.loop->stacked) outs.push_back(each.out);
        check_body(k + 1, task.loop->end, outs, where);
      }
    }
  }

  // Values written by a body are not visible outside it.
  void check_body(std::uint32_t begin, std::uint32_t end, const std::vector<std::uint32_t>& outs,
                  const std::string& where) {
    const std::vector<bool> before = is_written_;
    check_tasks(begin, end);
    for (const std::uint32_t id : outs)
      require_there(id, concat("a body gives what is there: %", id), where);
    is_written_ = before;
  }

  void check_task(const TaskList::Task& task) {
    const std::string where = concat("task '", task.name, "'");
    for (const std::uint32_t id : task.reads) {
      require_there(id, concat("what it reads is there: %", id), where);
    }
    for (const std::uint32_t id : task.writes) {
      require(id < tasks_.buffers.size(), "it writes a buffer that there is", where);
      const Lifetime lifetime = tasks_.buffers[id].lifetime;
      require(lifetime != Lifetime::Input && lifetime != Lifetime::Constant,
              concat("it writes what can be written: %", id), where);
      is_written_[id] = true;
    }
    for (const TaskList::Alternative& alternative : task.alternatives) {
      for (const TaskList::Guard& guard : alternative.when) {
        require(guard.symbol < tasks_.symbols.size() && guard.lo <= guard.hi,
                "a guard asks for values of a symbol", where);
      }
      for (const TaskList::Call& call : alternative.calls) {
        require(call.kernel < tasks_.kernels.size(), "it calls a kernel that there is", where);
        for (const std::uint32_t id : call.buffers) {
          const bool is_known = std::ranges::find(task.reads, id) != task.reads.end() ||
                                std::ranges::find(task.writes, id) != task.writes.end();
          require(is_known, concat("a call uses what its task reads or writes: %", id), where);
        }
      }
    }
    for (const auto& [result, operand] : task.may_share) {
      const bool holds = std::ranges::find(task.writes, result) != task.writes.end() &&
                         std::ranges::find(task.reads, operand) != task.reads.end();
      require(holds, "a result shares memory with an operand", where);
    }
  }

  const TaskList& tasks_;
  std::vector<bool> is_written_;
};

}  // namespace

void verify(const TaskList& tasks) { TaskListVerifier(tasks).run(); }

}  // namespace tenon::inline tasks
