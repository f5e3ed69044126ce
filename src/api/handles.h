#pragma once

#include "driver/training/session.h"
#include "embed/handles.h"
#include "embed/loaded_program.h"
#include "ir/graph.h"
#include "ops/evaluation.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tenon::api {

struct TrainerState {
  /// as it was given, with the batch a symbol or not
  Graph original;
  std::unique_ptr<Session> session;
  /// of the last step, for callers who brought no memory
  std::vector<Tensor> outputs;
  /// states, for callers who look at them
  std::map<std::string, Tensor> looked_at;
  std::int64_t step = 0;
  std::atomic_flag is_in_use;
};

using Models = embed::Handles<const Graph, tenon_model, 0x71>;
using Trainers = embed::Handles<TrainerState, tenon_trainer, 0x74>;
using Values = embed::Handles<const Datum, tenon_value, 0x75>;
Models& models();
Trainers& trainers();
Values& values();

/// Values as they come from and go to callers. Tensors are borrowed: the caller's memory has to
/// outlive them.
Tensor borrowed_tensor(const tenon_tensor& tensor, const std::string& name);
Tensor copied_tensor(const tenon_tensor& tensor, const std::string& name);
/// Writes an output where the caller wants it, or tells where it lies, in `kept`.
void give(const Tensor& made, tenon_tensor& wanted, Tensor& kept, const std::string& name);

/// Runs a context on values of any kind.
std::vector<Datum> run_values(embed::RunContext& context, std::vector<Datum> inputs,
                              std::size_t output_count);

/// A context that takes values which are no tensors.
class ValueContext : public embed::RunContext {
 public:
  virtual std::vector<Datum> run(const std::vector<Datum>& inputs) = 0;
  using embed::RunContext::run;
};

}  // namespace tenon::api
