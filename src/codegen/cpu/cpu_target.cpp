#include "codegen/cpu/cpu_target.h"

#include "base/error.h"
#include "codegen/cpu/candidates.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/nest_passes.h"
#include "codegen/cpu/schedule.h"
#include "nests/bf16_dot.h"
#include "nests/integer_contraction.h"
#include "target/bf16.h"
#include "target/cpu_facts.h"
#include "target/dot_instructions.h"

#include <algorithm>

namespace tenon::codegen::cpu {
namespace {

class CpuTarget : public Target {
 public:
  CpuTarget(const std::string& name, std::shared_ptr<const ObjectCache> cache)
      : facts_(cpu_facts(name)), cache_(std::move(cache)) {}

  TargetSpec spec() const override { return {.architecture = facts_.name}; }
  const TargetFacts& facts() const override { return facts_; }
  std::span<const nests::NestPassInfo> nest_pass_list() const override {
    return cpu::nest_pass_list();
  }
  std::vector<nests::NestPass> nest_passes(bool allow_winograd) const override {
    return node_passes(facts_, allow_winograd);
  }
  std::vector<Candidate> candidates(const KernelWork& work) const override {
    return candidates_for(work, facts_);
  }
  std::vector<std::string> candidate_names() const override {
    return {"winograd", "tiles", "pairs", "dot", "dots", "loops"};
  }
  void schedule(LoopNest& nest) const override { cpu::schedule(nest); }
  // The instruction set, and extensions that the kernels use beyond it: "+avx512-bf16" for bf16
  // pairs, "+avx512-vnni" for int8 dots.
  std::string program_target(std::span<const TaskList::Kernel> kernels) const override {
    const auto is_paired = [](const TaskList::Kernel& kernel) {
      return nests::has_bf16_dot(kernel.nest.body);
    };
    const auto adds_fours = [](const TaskList::Kernel& kernel) {
      return nests::has_dots(kernel.nest.body);
    };
    std::string name = facts_.instructions;
    if (std::ranges::any_of(kernels, is_paired)) name += concat("+", bf16_instructions(facts_));
    if (has_dot_instructions(facts_) && std::ranges::any_of(kernels, adds_fours))
      name += concat("+", dot_instructions(facts_));
    return name;
  }
  Module emit(std::span<const TaskList::Kernel> kernels, bool keeps_text) const override {
    if (keeps_text || !cache_) return compile_nests(kernels, facts_, keeps_text);
    const std::string key = key_of(kernels);
    Module module;
    if (auto code = cache_->find(key)) {
      module.code = std::move(*code);
    } else {
      module = compile_nests(kernels, facts_, keeps_text);
      cache_->store(key, module.code);
    }
    return module;
  }
  std::string machine_name() const override { return cpu::machine_name(facts_); }
  std::string generator_name() const override { return cpu::generator_name(); }

 private:
  // Everything that decides the object code: generator, machine model, nests.
  std::string key_of(std::span<const TaskList::Kernel> kernels) const {
    const Heuristics& heuristics = facts_.heuristics;
    std::string key = concat(generator_name(), "\n", machine_name(), "\n", facts_.name, " ",
                             facts_.instructions, " ", heuristics.prefetch_bytes, " ",
                             heuristics.weight_streams, " ", heuristics.streamed_caches);
    for (const MemoryLevel& level : facts_.levels) key += concat(" ", level.bytes);
    for (const TaskList::Kernel& kernel : kernels)
      key += concat("\n", kernel.nest.name, ":\n", to_string(kernel.nest));
    return key;
  }

  TargetFacts facts_;
  std::shared_ptr<const ObjectCache> cache_;
};

}  // namespace

std::shared_ptr<const Target> cpu_target(const std::string& name,
                                         std::shared_ptr<const ObjectCache> cache) {
  return std::make_shared<const CpuTarget>(name, std::move(cache));
}

TargetKind cpu_kind() {
  using enum TargetSpec::Precision;
  return {"cpu", cpu_names(), {}, {F32, F16, BF16}, [](const TargetSpec& spec) {
            return cpu_target(spec.architecture, user_object_cache());
          }};
}

}  // namespace tenon::codegen::cpu
