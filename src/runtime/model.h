#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program/program.h"
#include "runtime/code_image.h"

namespace tenon {

/// A program ready to run: its code linked. Never changes; any number of contexts, in any threads,
/// run it at once.
class Model {
 public:
  /// Throws Error if the code does not fit this machine.
  explicit Model(Program program);

  const Program& program() const { return program_; }
  KernelFunction kernel(std::size_t index) const { return kernels_[index]; }

 private:
  Program program_;
  CodeImage code_;
  std::vector<KernelFunction> kernels_;
};

/// What one caller needs to run a model: an arena and the pointers of every step. One thread at a
/// time uses a context; a second one is refused with an Error (Usage).
class Context {
 public:
  /// `thread_count` 0: as many as the process may use. Results do not depend on it.
  Context(std::shared_ptr<const Model> model, int thread_count);
  Context(Context&&) noexcept;
  ~Context();

  /// Fixes the shapes of the inputs; needed before the first run where any is symbolic, and again
  /// when one changes. Throws Error, by name, axis and range, for a shape the model does not take.
  void bind(std::span<const std::vector<std::int64_t>> input_shapes);
  const std::vector<std::int64_t>& output_shape(std::size_t output) const;
  std::uint64_t arena_bytes() const;
  int thread_count() const;

  /// Runs once. Allocates nothing. Inputs and outputs are row-major and 64-byte aligned or not.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs);
  /// The same, and adds the seconds that each step of the program took to `seconds`.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs, std::span<double> seconds);

 private:
  struct State;
  class Use;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
