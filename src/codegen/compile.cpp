#include "codegen/compile.h"

#include "base/error.h"
#include "codegen/assemble.h"
#include "codegen/select.h"
#include "nests/verify.h"
#include "program/text.h"

#include <algorithm>
#include <new>

namespace tenon::codegen {
namespace {

// Names the task that runs a kernel first.
std::string user_of(const TaskList& tasks, std::size_t kernel) {
  for (const TaskList::Task& task : tasks.tasks) {
    for (const TaskList::Alternative& alternative : task.alternatives) {
      if (std::ranges::any_of(alternative.calls,
                              [&](const auto& call) { return call.kernel == kernel; }))
        return task.name;
    }
  }
  return tasks.kernels[kernel].name;
}

void verify_nests(const TaskList& tasks) {
  for (std::size_t k = 0; k < tasks.kernels.size(); ++k) {
    try {
      nests::verify(tasks.kernels[k].nest);
    } catch (InternalError& error) {
      error.locate(concat("task '", user_of(tasks, k), "'"));
      throw;
    }
  }
}

}  // namespace

Compiled compile(const Graph& graph, const CompileOptions& options) {
  try {
    Selected selected = select(graph, options);
    const TaskList& tasks = selected.tasks;
    const Target& target = *options.target;
    verify(tasks);
    if (target.runs_nests_as_written()) verify_nests(tasks);
    Compiled made{
        assemble(tasks, target.program_target(tasks.kernels)), std::move(selected.decisions), {}};
    if (options.describes_step) {
      made.step_problem =
          step_problem(tasks, target.facts(), target.working_units(options.threads));
    }
    made.program.code = target.emit(tasks.kernels, false).code;
    if (options.keeps_tasks) made.tasks = std::move(selected.tasks);
    return made;
  } catch (const std::bad_alloc&) {
    throw Error("no memory to compile the model", ErrorKind::OutOfMemory)
        .at("graph '", graph.name, "'");
  }
}

std::vector<Decision> decide(const Graph& graph, const CompileOptions& options) {
  CompileOptions settings = options;
  settings.keeps_record = true;
  std::vector<Decision> decisions = select(graph, settings).decisions;
  std::erase_if(decisions, [](const Decision& decision) { return !decision.node; });
  return decisions;
}

std::string print_code(const Graph& graph, const CompileOptions& options, CompileStage stage) {
  const TaskList tasks = select(graph, options).tasks;
  verify(tasks);
  if (stage == CompileStage::Tasks) return to_string(tasks);
  std::string text;
  if (stage == CompileStage::Nests || stage == CompileStage::Code) {
    for (const TaskList::Kernel& kernel : tasks.kernels) {
      if (kernel.library.empty()) text += to_string(kernel.nest) + "\n";
    }
    if (stage == CompileStage::Nests) return text;
  }
  const Program program = assemble(tasks, options.target->program_target(tasks.kernels));
  if (stage == CompileStage::Plan) return plan_text(program);
  if (stage == CompileStage::Program) return to_string(program);
  for (const Program::Step& step : program.steps) {
    static constexpr std::string_view kKinds[] = {"kernel", "operator ", "branch", "loop"};
    const bool is_kernel = step.kind == Program::StepKind::Kernel;
    const bool is_host = step.kind == Program::StepKind::Host;
    text += concat("step '", step.name, "': ",
                   is_kernel ? program.kernels[step.kernel].symbol
                             : kKinds[static_cast<std::size_t>(step.kind)],
                   is_host ? program.operators[step.detail].op : "", "\n");
  }
  return text + options.target->emit(tasks.kernels, true).text;
}

}  // namespace tenon::codegen
