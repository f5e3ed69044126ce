#pragma once

#include "documents/chainer/functions.h"
#include "documents/chainer/tables.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::documents::chainer {

/// Interpretations of a backward function's inputs. The file tags the inputs of nearly every
/// function, even if Chainer retains none of them; the lists of retained indices are accurate.
enum class Reading : std::uint8_t { Tags, Retained };

/// A training step as sizes and dependencies, the input of a memory planner.
struct TrainingGraph {
  enum class TensorRole : std::uint8_t { Intermediate, Parameter, Input };
  struct Tensor {
    std::int64_t id = 0, bytes = 0;
    TensorRole role = TensorRole::Intermediate;
    /// Step that produces it.
    std::size_t producer = kNone;
  };
  /// Forward values that a backward function reads, by position in `tensors`.
  struct Needs {
    std::vector<std::size_t> inputs, outputs;
  };
  /// A forward function and its backward, which reads the gradients of `makes` and produces those
  /// of `reads`.
  struct FunctionStep {
    std::string function;
    /// Position in the file.
    std::size_t record = 0;
    std::vector<std::size_t> reads, makes;
    Needs tagged, retained;
    /// Bytes that the function object itself stores between forward and backward (masks, scores,
    /// statistics); not in the file.
    std::int64_t hidden_bytes = 0;

    const Needs& needs(Reading reading) const {
      return reading == Reading::Tags ? tagged : retained;
    }
  };

  /// In the order of the file's variables.
  std::vector<Tensor> tensors;
  /// In forward order; the backward steps run in reverse.
  std::vector<FunctionStep> steps;

  std::int64_t bytes_of(TensorRole role) const;
  std::size_t count_of(TensorRole role) const;
};

TrainingGraph training_graph(const Tables& tables, std::string_view source);

/// Returns the retained indices of a record; nullopt if they are not lists of integers.
std::optional<Retained> retained_of(const Function& function);

/// Bytes of intermediates and their gradients at one moment; excludes parameters and inputs.
struct TrainingPeak {
  std::int64_t bytes = 0;
  std::size_t step = 0;
  bool is_backward = false;
};
/// Returns the peak without rematerialization: every value lives from its definition to its last
/// use. Gradients accumulate in place. Reading::Retained includes hidden state.
TrainingPeak peak_without_recomputation(const TrainingGraph& graph, Reading reading);
/// Returns the largest working set of a single function, a lower bound for every schedule of whole
/// functions.
TrainingPeak largest_working_set(const TrainingGraph& graph, Reading reading);
/// Returns the intermediates that backward functions read.
std::vector<std::size_t> kept_for_backward(const TrainingGraph& graph, Reading reading);

}  // namespace tenon::documents::chainer
