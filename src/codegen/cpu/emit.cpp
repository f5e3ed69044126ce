// LLVM code generation: target machine, optimization pipeline and object emission.
#include "codegen/cpu/emit.h"

#include "base/error.h"
#include "base/text.h"
#include "codegen/cpu/kernel_emitter.h"
#include "nests/bf16_dot.h"
#include "target/bf16.h"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <new>

// Bounds of the array of LLVM's static constructors, which cmake/start_up.ld defers beyond process
// start. Without that linker script both are null and the constructors have run.
extern "C" {
[[gnu::weak]] extern void (*const tenon_late_constructors_begin[])();
[[gnu::weak]] extern void (*const tenon_late_constructors_end[])();
}

namespace tenon::codegen::cpu {
namespace {

// LLVM features for bf16 dot products and AMX.
std::string features_of(const TargetFacts& facts) {
  return bf16_instructions(facts) == "amx-bf16" ? "+avx512bf16,+amx-tile,+amx-bf16" : "+avx512bf16";
}

std::unique_ptr<llvm::TargetMachine> target_machine(const TargetFacts& facts, bool has_bf16_dot) {
  static std::once_flag once;
  std::call_once(once, [] {
    for (auto constructor = tenon_late_constructors_begin;
         constructor != tenon_late_constructors_end; ++constructor) {
      (*constructor)();
    }
    // Throws instead of aborting. LLVM's state is inconsistent afterwards, which is acceptable for
    // a process that ends.
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const std::string triple = "x86_64-unknown-linux-gnu";
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (found == nullptr)
    throw Error("no code generator for this machine", ErrorKind::Device).got(problem);
  // "native" also uses only the architecture level's features: the program records no further
  // requirements.
  const std::string& cpu = facts.instructions;
  llvm::TargetOptions options;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      triple, cpu, has_bf16_dot ? features_of(facts) : "", options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) throw Error("no code generator for this processor", ErrorKind::Device).got(cpu);
  return machine;
}

// Kernels are vectorized already; the passes only share and hoist index arithmetic.
void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager calls;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(calls);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, calls, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), true));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

// LLVM's scheduling model of the processor; empty for an architecture level.
std::string llvm_name(const TargetFacts& facts) {
  if (facts.name == "native") return llvm::sys::getHostCPUName().str();
  if (facts.name == "zen4") return "znver4";
  if (facts.name == "sapphire-rapids") return "sapphirerapids";
  return facts.name == facts.instructions ? "" : facts.name;
}

void write(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind,
           llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, kind)) {
    throw Error("no object files for this machine", ErrorKind::Device);
  }
  passes.run(module);
}

}  // namespace

std::string machine_name(const TargetFacts& facts) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  std::map<std::string, bool> features;
  for (const auto& [feature, is_there] : llvm::sys::getHostCPUFeatures())
    features[feature.str()] = is_there;
  for (const auto& [feature, is_there] : features) {
    if (!is_there) continue;
    for (const char letter : feature + ",")
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  std::array<char, 9> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(hash ^ (hash >> 32)));
  return concat(llvm::sys::getHostCPUName().str(), " ", digits.data(),
                facts.name == "native" ? "" : concat(" as ", facts.name));
}

Module compile_nests(std::span<const TaskList::Kernel> kernels, const TargetFacts& facts,
                     bool keeps_text) {
  const bool uses_pairs = std::ranges::any_of(kernels, [](const TaskList::Kernel& kernel) {
    return nests::has_bf16_dot(kernel.nest.body);
  });
  const auto machine = target_machine(facts, uses_pairs);
  llvm::LLVMContext context;
  llvm::Module module("tenon", context);
  module.setTargetTriple(machine->getTargetTriple().str());
  module.setDataLayout(machine->createDataLayout());
  for (const TaskList::Kernel& kernel : kernels)
    KernelEmitter(module, kernel.nest, kernel.nest.name, facts).run();
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems)) {
    throw InternalError("verifyModule", concat("generated code is well formed: ", problem),
                        __FILE__, __LINE__);
  }
  if (const std::string tuned_for = llvm_name(facts); !tuned_for.empty()) {
    for (llvm::Function& function : module) {
      if (!function.isDeclaration()) function.addFnAttr("tune-cpu", tuned_for);
    }
  }
  optimise(module, *machine);
  Module compiled;
  if (keeps_text) {
    llvm::raw_string_ostream ir(compiled.text);
    module.print(ir, nullptr);
    ir << "\n";
    llvm::SmallVector<char, 0> assembly;
    write(module, *machine, llvm::CodeGenFileType::AssemblyFile, assembly);
    compiled.text.append(assembly.begin(), assembly.end());
    return compiled;
  }
  llvm::SmallVector<char, 0> object;
  write(module, *machine, llvm::CodeGenFileType::ObjectFile, object);
  const auto* bytes = reinterpret_cast<const std::byte*>(object.data());
  compiled.code.assign(bytes, bytes + object.size());
  return compiled;
}

}  // namespace tenon::codegen::cpu
