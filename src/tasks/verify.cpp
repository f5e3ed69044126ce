#include "base/error.h"
#include "tasks/task_list.h"

#include <algorithm>

namespace tenon {
namespace {

class Verifier {
 public:
  explicit Verifier(const TaskList& tasks)
      : tasks_(tasks), is_written_(tasks.buffers.size(), false) {}

  void run() {
    for (std::size_t k = 0; k < tasks_.buffers.size(); ++k) check_buffer(k);
    for (const auto* ports : {&tasks_.inputs, &tasks_.outputs}) {
      const Life life = ports == &tasks_.inputs ? Life::Input : Life::Output;
      for (std::size_t k = 0; k < ports->size(); ++k) {
        const std::uint32_t id = (*ports)[k];
        require(id < tasks_.buffers.size(), "a port is a buffer", "the list");
        require(tasks_.buffers[id].life == life && tasks_.buffers[id].port == k,
                "a port is a buffer of its kind and number", "the list");
      }
    }
    for (const TaskList::Task& task : tasks_.tasks) check_task(task);
    for (const std::uint32_t output : tasks_.outputs) {
      const bool is_empty = product(tasks_.buffers[output].dims) == Dim(0);
      require(is_written_[output] || is_empty, "an output is written", place(output));
    }
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
    is_written_[k] =
        buffer.life == Life::Input || buffer.life == Life::Constant || buffer.life == Life::State;
    if (!buffer.form) return;
    require(buffer.form->source < k, "a form is made of a buffer before it", place(id));
    const Life of = tasks_.buffers[buffer.form->source].life;
    require(of == Life::Constant || of == Life::State, "a form is made of a constant or a state",
            place(id));
  }

  void check_task(const TaskList::Task& task) {
    const std::string where = concat("task '", task.name, "'");
    for (const std::uint32_t id : task.reads) {
      require(id < tasks_.buffers.size(), "it reads a buffer that there is", where);
      // Of what has no elements nothing is made.
      const bool is_empty = product(tasks_.buffers[id].dims) == Dim(0);
      require(is_written_[id] || is_empty, concat("what it reads is there: %", id), where);
    }
    for (const std::uint32_t id : task.writes) {
      require(id < tasks_.buffers.size(), "it writes a buffer that there is", where);
      const Life life = tasks_.buffers[id].life;
      require(life != Life::Input && life != Life::Constant,
              concat("it writes what can be written: %", id), where);
      is_written_[id] = true;
    }
    for (const TaskList::Way& way : task.ways) {
      for (const TaskList::Guard& guard : way.when) {
        require(guard.symbol < tasks_.symbols.size() && guard.lo <= guard.hi,
                "a guard asks for values of a symbol", where);
      }
      for (const TaskList::Call& call : way.calls) {
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

void verify(const TaskList& tasks) { Verifier(tasks).run(); }

}  // namespace tenon
