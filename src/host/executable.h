#pragma once

#include "host/operators.h"
#include "runtime/executable.h"

#include <memory>
#include <optional>
#include <vector>

namespace tenon::inline host {

/// The resolved operators of a program, and properties of its steps. Any number of executors in any
/// threads use them concurrently.
class HostExecutable : public HostOperators {
 public:
  /// Throws Error if an operator does not match the program's use. The model must outlive it.
  explicit HostExecutable(const Executable& model);

  std::unique_ptr<HostSteps> make_steps(KernelRunner& runner) const override;
  const Program& program() const { return model_.program(); }
  const Executable& model() const { return model_; }
  const ReadyOperator& op(std::uint32_t number) const { return operators_[number]; }
  /// Returns the segment that starts at a step.
  std::size_t segment_at(std::uint32_t step) const { return segment_at_[step]; }
  /// By buffer; nullopt if the value is not a tensor of known rank.
  const std::vector<std::optional<DType>>& dtypes() const { return dtypes_; }
  /// By buffer: the symbols that its shape defines.
  const std::vector<std::vector<std::uint32_t>>& symbols_of() const { return symbols_of_; }
  /// By step: the symbols that its bodies define.
  const std::vector<std::vector<std::uint32_t>>& inner_symbols() const { return inner_symbols_; }
  /// By step: the slots that are dead after it, including its bodies.
  const std::vector<std::vector<std::uint32_t>>& last_uses() const { return last_uses_; }

 private:
  void find_last_uses();

  const Executable& model_;
  std::vector<ReadyOperator> operators_;
  std::vector<std::size_t> segment_at_;
  std::vector<std::optional<DType>> dtypes_;
  std::vector<std::vector<std::uint32_t>> symbols_of_, inner_symbols_, last_uses_;
};

/// Resolves the operators of a program: an `Executable::LoadOperators`.
std::shared_ptr<const HostOperators> load_operators(const Executable& model);
/// Loads a program with any steps. Throws Error if the code does not fit this machine, or an
/// operator does not match the program's use.
std::shared_ptr<const Executable> load_executable(Program program);

}  // namespace tenon::inline host
