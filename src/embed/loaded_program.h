#pragma once

#include "embed/handles.h"
#include "runtime/executor.h"
#include "tenon/tenon.h"

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::embed {

/// An input, output, weight or state in the public interface.
struct ProgramPort {
  std::string name, type;
  /// -1: symbolic or data-dependent.
  std::vector<std::int64_t> shape;
  bool has_rank = false;
  tenon_dtype dtype = TENON_NO_DTYPE;
  /// Position among the program's inputs or outputs; for a state, its number.
  std::size_t position = 0;
};

class LoadedProgram;

/// Runs a program for one caller at a time. Validates all arguments.
class RunContext {
 public:
  RunContext(std::shared_ptr<const LoadedProgram> program, int threads);
  virtual ~RunContext() = default;
  /// Binds input shapes, and sets the output shapes unless they depend on data.
  virtual void bind(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) = 0;
  /// `watched`, unless null, receives the durations of steps as JSON.
  virtual void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
                   std::string* watched) = 0;
  /// Split-phase run: on a device `start` does not wait.
  virtual void start(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) = 0;
  virtual void finish() = 0;
  /// Returns a context of the same program with the present states.
  virtual std::unique_ptr<RunContext> fork() = 0;
  std::string describe() const;

  /// Copies the value of a state to `elements`, or to memory of the context if that has no data.
  void read_state(const std::string& name, tenon_tensor& elements);
  void write_state(const std::string& name, const tenon_tensor& elements);
  /// Keeps a state in the caller's memory.
  void bind_state(const std::string& name, const tenon_tensor& elements);
  void reset_states();

 protected:
  const LoadedProgram& loaded() const { return *program_; }
  void require_counts(std::size_t inputs, std::size_t outputs) const;
  void share_states(RunContext& from);

  const std::shared_ptr<const LoadedProgram> program_;
  Executor executor_;
  std::atomic_flag is_in_use_;

 private:
  struct ReadState {
    std::vector<std::int64_t> shape;
    std::shared_ptr<std::byte> memory;
  };
  std::size_t find_state(const std::string& name, const tenon_tensor& elements) const;

  std::map<std::size_t, ReadState> read_;  // values that the caller has read, by state
};

/// Replacement data of the program's constants, by buffer.
using Replacements = std::vector<std::pair<std::uint32_t, std::shared_ptr<const std::byte>>>;

/// A loaded program. Immutable except for its weights.
class LoadedProgram : public std::enable_shared_from_this<LoadedProgram> {
 public:
  explicit LoadedProgram(std::shared_ptr<const Executable> model);
  virtual ~LoadedProgram() = default;

  const std::vector<ProgramPort>& ports(std::int32_t kind) const;
  const std::string& description() const { return description_; }
  /// Throws Error (Usage) if the name is not a weight, or the elements do not match.
  void set_weight(const std::string& name, const tenon_tensor& elements);

  const std::shared_ptr<const Executable>& model() const { return model_; }
  const Program& program() const { return model_->program(); }
  virtual std::unique_ptr<RunContext> make_context(int threads) const = 0;

 protected:
  Replacements replacements() const;

 private:
  std::shared_ptr<const Executable> model_;
  std::vector<ProgramPort> inputs_, outputs_, weights_, states_;
  std::vector<std::uint32_t> weight_buffers_;
  std::string description_;
  mutable std::mutex mutex_;
  Replacements replacements_;
};

/// Loads a program. Programs with host operators are delegated to `load_with_operators`.
std::shared_ptr<LoadedProgram> load(Program program);
/// Defined per library: the full library runs host operators, the runtime library throws Error.
std::shared_ptr<LoadedProgram> load_with_operators(Program program);

/// Reads the program appended to the file from which this code was loaded.
Program read_embedded_program();

using Programs = Handles<LoadedProgram, tenon_program, 0x72>;
using Contexts = Handles<RunContext, tenon_context, 0x73>;
Programs& programs();
Contexts& contexts();

}  // namespace tenon::embed
