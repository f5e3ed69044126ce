#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ops/evaluation.h"
#include "program/program.h"
#include "runtime/model.h"

namespace tenon {

/// A program made of parts, ready to run: its parts linked, its operators looked up. Never changes;
/// any number of contexts, in any threads, run it at once.
class ComposedModel {
 public:
  /// Throws Error if the code does not fit this machine or the routine does not hold together.
  explicit ComposedModel(Program program);
  ~ComposedModel();

  const Program& program() const { return program_; }
  const Program& part(std::uint32_t number) const;
  std::size_t part_count() const;
  /// A step of the routine by its number, bodies numbered through.
  std::size_t routine_step_count() const;
  const Routine::Step& routine_step(std::uint32_t number) const;
  struct Parts;
  const Parts& parts() const { return *parts_; }

 private:
  Program program_;  // its parts are with the models
  std::unique_ptr<Parts> parts_;
};

/// What one caller needs to run it: memory for its values. One thread at a time uses a context.
class ComposedContext {
 public:
  /// `thread_count` 0: as many as the process may use. Results do not depend on it.
  ComposedContext(std::shared_ptr<const ComposedModel> model, int thread_count);
  ComposedContext(ComposedContext&&) noexcept;
  ~ComposedContext();

  /// Throws Error if an input does not fit, or if the data breaks an op's rules. A part whose shapes
  /// are those of the run before allocates nothing but what it gives.
  std::vector<Datum> run(const std::vector<Datum>& inputs);
  /// Called before each run of a body, such as a trip of a loop; what it throws ends the run.
  void before_bodies(std::function<void()> call);
  /// The same, and adds what was seen of each step of the parts and of the operators between them.
  std::vector<Datum> run(const std::vector<Datum>& inputs, RunEvents& events);
  /// The same, and calls `look` behind each step of a part, and behind operators with what they made.
  struct Looks {
    std::function<void(std::uint32_t part, const Context& context, std::size_t step)> behind_step;
    std::function<void(const Routine::Step& step, const std::vector<Datum>& results)> behind_operators;
  };
  std::vector<Datum> run(const std::vector<Datum>& inputs, const Looks& looks);
  /// The context of a part, null before it first ran.
  const Context* part_context(std::uint32_t part) const;
  Context* part_context(std::uint32_t part);
  int thread_count() const;
  /// Bytes that the parts' arenas have, and their kernels' scratch.
  std::uint64_t arena_bytes() const;
  std::uint64_t scratch_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
