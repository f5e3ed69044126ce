#include "runtime/executable.h"

#include "base/error.h"
#include "program/checksum.h"
#include "program/target.h"

#include <atomic>
#include <optional>
#include <utility>

namespace tenon::inline runtime {
namespace {

// Returns the program's code after a check that this processor supports it.
const std::vector<std::byte>& runnable_code(const Program& program) {
  require_target(program);
  return program.code;
}

}  // namespace

Error altered_constants(const Program& program, std::optional<std::size_t> step) {
  return Error("the program file is damaged")
      .at("program '", program.name, "'",
          step ? concat(", step '", program.steps[*step].name, "'") : "")
      .got("altered constants")
      .hint("compile the model again");
}

Executable::Executable(Program program) : Executable(std::move(program), load_on_device) {}

Executable::Executable(Program program, MakeDevice make_device, LoadOperators load_operators)
    : program_(std::move(program)),
      segments_(segments_of(program_)),
      is_intact_(program_.constant_checksums.size()) {
  if (is_for_device(program_)) {
    // Device constants are verified as a whole: the copy reads them in any case.
    std::atomic<bool> is_altered = false;
    compare(0, program_.constant_bytes, is_altered);
    if (is_altered) throw altered_constants(program_);
    device_ = make_device(program_);
  } else {
    code_.emplace(runnable_code(program_));
    for (const Program::Kernel& kernel : program_.kernels) {
      kernels_.push_back(reinterpret_cast<KernelFunction>(code_->function(kernel.symbol)));
    }
  }
  if (!program_.is_kernel_only() && load_operators != nullptr) operators_ = load_operators(*this);
}

bool Executable::is_compared(std::uint64_t begin, std::uint64_t end) const {
  if (is_intact_.empty() || begin >= end) return true;
  for (std::size_t block = begin / kChecksumBlock; block <= (end - 1) / kChecksumBlock; ++block) {
    if (!is_intact_[block].load(std::memory_order_relaxed)) return false;
  }
  return true;
}

bool Executable::compare(std::uint64_t begin, std::uint64_t end,
                         std::atomic<bool>& is_altered) const {
  if (is_intact_.empty() || begin >= end) return false;
  bool has_compared = false;
  for (std::size_t block = begin / kChecksumBlock; block <= (end - 1) / kChecksumBlock; ++block) {
    // Two threads may verify a block concurrently, with the same result.
    if (is_intact_[block].load(std::memory_order_relaxed)) continue;
    has_compared = true;
    const auto bytes = checksum_block({program_.constants.get(), program_.constant_bytes}, block);
    const bool is_intact = checksum(bytes) == program_.constant_checksums[block];
    (is_intact ? is_intact_[block] : is_altered).store(true, std::memory_order_relaxed);
  }
  return has_compared;
}

}  // namespace tenon::inline runtime
