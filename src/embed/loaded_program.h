#pragma once

#include "embed/handles.h"
#include "program/program.h"
#include "tenon/tenon.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tenon::embed {

/// An input, output or weight in the public interface.
struct ProgramPort {
  std::string name, type;
  /// -1: symbolic or data-dependent.
  std::vector<std::int64_t> shape;
  bool has_rank = false;
  tenon_dtype dtype = TENON_NO_DTYPE;
};

/// Runs a program for one caller at a time. Validates all arguments.
class RunContext {
 public:
  virtual ~RunContext() = default;
  /// Binds input shapes, and sets the output shapes unless they depend on data.
  virtual void bind(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) = 0;
  /// `watched`, unless null, receives the durations of steps as JSON.
  virtual void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
                   std::string* watched) = 0;
  /// Split-phase run: on a device `start` does not wait.
  virtual void start(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) = 0;
  virtual void finish() = 0;
  virtual std::string describe() const = 0;
};

/// Replacement data of the program's constants, by buffer.
using Replacements = std::vector<std::pair<std::uint32_t, std::shared_ptr<const std::byte>>>;

/// A loaded program. Immutable except for its weights.
class LoadedProgram {
 public:
  explicit LoadedProgram(const Program& program);
  virtual ~LoadedProgram() = default;

  const std::vector<ProgramPort>& ports(std::int32_t kind) const;
  const std::string& description() const { return description_; }
  /// Throws Error (Usage) if the name is not a weight, or the elements do not match.
  void set_weight(const std::string& name, const tenon_tensor& elements);

  virtual const Program& program() const = 0;
  virtual std::unique_ptr<RunContext> make_context(int threads) const = 0;

 protected:
  Replacements replacements() const;

 private:
  std::vector<ProgramPort> inputs_, outputs_, weights_;
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
