#include "codegen/cpu/cpu_target.h"

#include "codegen/cpu/candidates.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/schedule.h"
#include "target/cpu_facts.h"

namespace tenon::codegen::cpu {
namespace {

class CpuTarget : public Target {
 public:
  explicit CpuTarget(const std::string& name) : facts_(cpu_facts(name)) {}

  const TargetFacts& facts() const override { return facts_; }
  std::vector<Candidate> candidates(const KernelWork& work) const override {
    return candidates_for(work, facts_);
  }
  void schedule(LoopNest& nest) const override { cpu::schedule(nest); }
  Module emit(std::span<const KernelSource> kernels, bool keeps_text) const override {
    return compile_nests(kernels, facts_, keeps_text);
  }
  std::string machine_name() const override { return cpu::machine_name(facts_); }
  std::string generator_name() const override { return cpu::generator_name(); }

 private:
  TargetFacts facts_;
};

}  // namespace

std::shared_ptr<const Target> cpu_target(const std::string& name) {
  return std::make_shared<const CpuTarget>(name);
}

}  // namespace tenon::codegen::cpu
