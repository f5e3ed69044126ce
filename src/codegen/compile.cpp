#include "codegen/compile.h"

#include "base/error.h"
#include "codegen/assemble.h"
#include "codegen/cuda/binding.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/source_writer.h"
#include "codegen/overwritten_states.h"
#include "codegen/select.h"
#include "nests/bf16_dot.h"
#include "nests/integer_contraction.h"
#include "nests/verify.h"
#include "program/text.h"
#include "target/bf16.h"
#include "target/dot_instructions.h"
#include "target/gpu_facts.h"

#include <algorithm>
#include <new>

namespace tenon::codegen {
namespace {

// Tensor-core instruction set of a kernel: wgmma reads tiles through tensor maps; mma.sync
// fragments use the kernel's own copies to shared memory.
std::string_view instructions_of(const TaskList::Kernel& kernel) {
  if (!kernel.maps.empty()) return cuda::kWgmma;
  return kernel.shared_bytes > 0 ? cuda::kMma : "";
}

// Kernels with generated code.
std::vector<cuda::BoundNest> device_kernels(const TaskList& tasks, const cuda::CudaTarget& device) {
  std::vector<cuda::BoundNest> kernels;
  for (const TaskList::Kernel& kernel : tasks.kernels) {
    if (kernel.library.empty()) {
      kernels.push_back({&kernel.nest, kernel.nest.name,
                         cuda::bind_selected(kernel.nest, device, instructions_of(kernel))});
    }
  }
  return kernels;
}

std::vector<std::byte> device_code(const TaskList& tasks, const cuda::CudaTarget& device) {
  const std::vector<cuda::BoundNest> kernels = device_kernels(tasks, device);
  if (device.is_emulated) {
    const std::string source = cuda::write_emulation(kernels);
    const auto* bytes = reinterpret_cast<const std::byte*>(source.data());
    return {bytes, bytes + source.size()};
  }
  if (kernels.empty()) return {};
  return cuda::compile_source(cuda::write_source(kernels), device.architecture);
}

Module emit(const TaskList& tasks, const Target& target, bool keeps_text) {
  std::vector<KernelSource> kernels;
  for (const TaskList::Kernel& kernel : tasks.kernels) {
    kernels.push_back({&kernel.nest, kernel.nest.name});
  }
  return target.emit(kernels, keeps_text);
}

// Instruction-set extensions that the kernels use beyond the target's level: "+avx512-bf16" for
// bf16 pairs, "+avx512-vnni" for int8 dots.
std::string extension_for(const TaskList& tasks, const CompileOptions& options) {
  if (options.device) return "";
  const auto is_paired = [](const TaskList::Kernel& kernel) {
    return nests::has_bf16_dot(kernel.nest.body);
  };
  const auto adds_fours = [](const TaskList::Kernel& kernel) {
    return nests::has_dots(kernel.nest.body);
  };
  const TargetFacts& facts = options.target->facts();
  std::string extension;
  if (std::ranges::any_of(tasks.kernels, is_paired))
    extension = concat("+", bf16_instructions(facts));
  if (has_dot_instructions(facts) && std::ranges::any_of(tasks.kernels, adds_fours))
    extension += concat("+", dot_instructions(facts));
  return extension;
}

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

std::string target_name(const CompileOptions& options) {
  if (options.device) return concat("cuda:", options.device->architecture);
  return options.target->facts().instructions;
}

Compiled compile(const Graph& graph, const CompileOptions& options) {
  try {
    Selected selected = select(graph, options);
    const TaskList& tasks = selected.tasks;
    verify(tasks);
    // GPU nests are bound to threads and have other invariants.
    if (!options.device) verify_nests(tasks);
    Compiled made{assemble(tasks, target_name(options) + extension_for(tasks, options)),
                  std::move(selected.decisions),
                  {},
                  overwritten_states(tasks, options.states),
                  {}};
    if (options.describes_step) {
      const TargetFacts facts =
          options.device ? gpu_facts(options.device->architecture) : options.target->facts();
      made.step_problem = step_problem(
          tasks, facts, options.device ? static_cast<int>(facts.units) : options.threads);
    }
    made.program.code = options.device ? device_code(tasks, *options.device)
                                       : emit(tasks, *options.target, false).code;
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
  const Program program = assemble(tasks, target_name(options) + extension_for(tasks, options));
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
  if (options.device) return text + cuda::write_source(device_kernels(tasks, *options.device));
  const Module compiled = emit(tasks, *options.target, true);
  return text + compiled.ir + "\n" + compiled.assembly;
}

}  // namespace tenon::codegen
