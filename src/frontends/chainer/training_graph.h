#pragma once

#include "frontends/chainer/functions.h"
#include "frontends/chainer/tables.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::chainer {

/// Two readings of what a backward function needs. The file tags every input of nearly every
/// function, even where Chainer keeps nothing; what is really kept is in the lists of retained
/// indexes.
enum class Reading : std::uint8_t { Tags, Retained };

/// A training step as sizes and dependencies: what a memory planner starts from.
struct TrainingGraph {
  enum class TensorRole : std::uint8_t { Intermediate, Parameter, Input };
  struct Tensor {
    std::int64_t id = 0, bytes = 0;
    TensorRole role = TensorRole::Intermediate;
    /// the step that makes it
    std::size_t producer = kNone;
  };
  /// Values that a backward function reads beside gradients, by position in `tensors`.
  struct Needs {
    std::vector<std::size_t> inputs, outputs;
  };
  /// A forward function and its backward, which reads the gradients of `makes` and makes those of
  /// `reads`.
  struct Step {
    std::string function;
    /// its position in the file
    std::size_t record = 0;
    std::vector<std::size_t> reads, makes;
    Needs tagged, retained;
    /// Kept by the function object itself from forward to backward (masks, scores, statistics); not
    /// in the file.
    std::int64_t hidden_bytes = 0;

    const Needs& needs(Reading reading) const {
      return reading == Reading::Tags ? tagged : retained;
    }
  };

  /// as the file has its variables
  std::vector<Tensor> tensors;
  /// in forward order; backward runs the other way
  std::vector<Step> steps;

  std::int64_t bytes_of(TensorRole role) const;
  std::size_t count_of(TensorRole role) const;
};

TrainingGraph training_graph(const Tables& tables, std::string_view source);

/// The lists of retained indexes in a record; nothing where they are no lists of integers.
std::optional<Retained> retained_of(const Function& function);

/// Bytes of intermediates and of their gradients at one moment; parameters and inputs lie
/// elsewhere.
struct Peak {
  std::int64_t bytes = 0;
  std::size_t step = 0;
  bool is_backward = false;
};
/// The most that is alive at once when every value lives from its making to its last use and
/// nothing is computed twice. Gradients add up in place. Under Reading::Retained hidden state
/// counts.
Peak peak_without_recomputation(const TrainingGraph& graph, Reading reading);
/// The most that one function reads and makes: no order of whole functions needs less.
Peak largest_working_set(const TrainingGraph& graph, Reading reading);
/// Intermediates that some backward function needs.
std::vector<std::size_t> kept_for_backward(const TrainingGraph& graph, Reading reading);

}  // namespace tenon::chainer
