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

/// An input, output or weight as callers see it.
struct Port {
  std::string name, type;
  /// -1: decided when it runs
  std::vector<std::int64_t> shape;
  bool has_rank = false;
  tenon_dtype dtype = TENON_NO_DTYPE;
};

/// Runs a program for one caller at a time. Everything it is given may be wrong, and is refused
/// then.
class RunContext {
 public:
  virtual ~RunContext() = default;
  /// Fixes shapes, and tells those of outputs where they do not depend on data.
  virtual void bind(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) = 0;
  /// `watched`, unless null: gets what each step took, as JSON.
  virtual void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
                   std::string* watched) = 0;
  /// A run in two halves: the first waits for nothing where the device works by itself.
  virtual void start(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) = 0;
  virtual void finish() = 0;
  virtual std::string describe() const = 0;
};

/// Elements that stand in for a constant of the program: by buffer.
using Replacements = std::vector<std::pair<std::uint32_t, std::shared_ptr<const std::byte>>>;

/// A program that can run here. Never changes but for its weights.
class LoadedProgram {
 public:
  explicit LoadedProgram(const Program& program);
  virtual ~LoadedProgram() = default;

  const std::vector<Port>& ports(std::int32_t kind) const;
  const std::string& description() const { return description_; }
  /// Throws Error (Usage) for a name that is no weight's and for elements that do not fit.
  void set_weight(const std::string& name, const tenon_tensor& elements);

  virtual const Program& program() const = 0;
  virtual std::unique_ptr<RunContext> make_context(int threads) const = 0;

 protected:
  Replacements replacements() const;

 private:
  std::vector<Port> inputs_, outputs_, weights_;
  std::vector<std::uint32_t> weight_buffers_;
  std::string description_;
  mutable std::mutex mutex_;
  Replacements replacements_;
};

/// Makes a program ready to run. One that calls operators which are no kernels is handed to
/// `load_with_operators`.
std::shared_ptr<LoadedProgram> load(Program program);
/// Each library has its own: the full one runs them, the runtime alone says that it has none.
std::shared_ptr<LoadedProgram> load_with_operators(Program program);

/// The program that was appended to the file that this code was loaded from.
Program read_own_program();

using Programs = Handles<LoadedProgram, tenon_program, 0x72>;
using Contexts = Handles<RunContext, tenon_context, 0x73>;
Programs& programs();
Contexts& contexts();

}  // namespace tenon::embed
