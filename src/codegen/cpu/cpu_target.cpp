#include "codegen/cpu/cpu_target.h"

#include "base/error.h"
#include "codegen/cpu/candidates.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/nest_passes.h"
#include "codegen/cpu/schedule.h"
#include "target/cpu_facts.h"

namespace tenon::codegen::cpu {
namespace {

class CpuTarget : public Target {
 public:
  CpuTarget(const std::string& name, std::shared_ptr<const ObjectCache> cache)
      : facts_(cpu_facts(name)), cache_(std::move(cache)) {}

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
  void schedule(LoopNest& nest) const override { cpu::schedule(nest); }
  Module emit(std::span<const KernelSource> kernels, bool keeps_text) const override {
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
  std::string key_of(std::span<const KernelSource> kernels) const {
    std::string key =
        concat(generator_name(), "\n", machine_name(), "\n", facts_.name, " ", facts_.instructions,
               " ", facts_.prefetch_bytes, " ", facts_.weight_streams, " ", facts_.streamed_caches);
    for (const MemoryLevel& level : facts_.levels) key += concat(" ", level.bytes);
    for (const KernelSource& kernel : kernels)
      key += concat("\n", kernel.symbol, ":\n", to_string(*kernel.nest));
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

}  // namespace tenon::codegen::cpu
