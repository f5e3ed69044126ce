#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/evaluation.h"
#include "runtime/model.h"

namespace tenon {

/// Runs the standard passes over a graph and compiles what comes out.
Program compile_graph(Graph graph, const std::string& cpu = "native", bool allow_winograd = true);

/// A graph of a program's inputs alone, so that they are read as a model's are.
Graph input_ports(const Program& program);
/// The names of some of its buffers.
std::vector<std::string> names_of(const Program& program, const std::vector<std::uint32_t>& buffers);

/// A program on this machine, taking and giving tensors.
class CompiledModel {
 public:
  CompiledModel(Program program, int thread_count);

  /// Throws Error if an input does not fit, or if the data breaks an op's rules.
  std::vector<Datum> run(const std::vector<Datum>& inputs);

  /// The same in two steps, for whoever runs more than once: fixes shapes and memory, then runs.
  void prepare(const std::vector<Datum>& inputs);
  void run_prepared();
  /// The same, and adds up the seconds of each step.
  void run_prepared(std::vector<double>& seconds);
  std::vector<Datum> outputs() const;

  const Program& program() const { return model_->program(); }
  const Context& context() const { return context_; }

 private:
  std::shared_ptr<const Model> model_;
  Context context_;
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
};

}  // namespace tenon
