#pragma once

#include "api/outputs.h"
#include "embed/handles.h"
#include "embed/loaded_program.h"
#include "ir/graph.h"
#include "ops/definition/evaluation.h"
#include "train/session.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tenon::api {

struct TrainerState {
  /// The model as passed in, with fixed or symbolic batch.
  Graph original;
  std::unique_ptr<train::Session> session;
  KeptOutputs outputs;
  /// States that callers have requested.
  std::map<std::string, Tensor> observed;
  std::int64_t step = 0;
  std::atomic_flag is_in_use;
};

using Models = embed::Handles<const Graph, tenon_model, 0x71>;
using Trainers = embed::Handles<TrainerState, tenon_trainer, 0x74>;
using Values = embed::Handles<const Datum, tenon_value, 0x75>;
Models& model_handles();
Trainers& trainers();
Values& values();

/// Conversions between the caller's tensors and values. Borrowed tensors refer to the caller's
/// memory, which must outlive them.
Tensor borrowed_tensor(const tenon_tensor& tensor, const std::string& name);
Tensor copied_tensor(const tenon_tensor& tensor, const std::string& name);
/// Throws Error (Usage) unless `give` can pass this result.
void require_fits(const TensorType& made, const tenon_tensor& wanted, const std::string& name);
/// Copies an output to the caller's memory, or keeps it in `kept` and returns its address.
void give(const Tensor& made, tenon_tensor& wanted, Tensor& kept, const std::string& name);

/// Runs a context on values of any kind.
std::vector<Datum> run_values(embed::RunContext& context, std::vector<Datum> inputs,
                              std::size_t output_count);

/// A context that also accepts values other than tensors.
class ValueContext : public embed::RunContext {
 public:
  using embed::RunContext::RunContext;
  virtual std::vector<Datum> run(const std::vector<Datum>& inputs) = 0;
  using embed::RunContext::run;
};

}  // namespace tenon::api
