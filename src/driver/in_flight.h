#pragma once

#include "ir/tensor.h"
#include "runtime/executable.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace tenon {

/// Contexts of one program that a single thread keeps busy: while one waits for its outputs the
/// others have runs of their own.
class InFlight {
 public:
  /// All of them run on the same inputs, in ordinary memory of the host's.
  InFlight(const std::shared_ptr<const Executable>& model, int thread_count,
           const std::vector<Tensor>& inputs, std::size_t count);

  /// Runs so often in all, in turns, after each has run once. Gives the seconds.
  double run(std::size_t runs);
  std::size_t count() const { return lanes_.size(); }

 private:
  struct Lane {
    Context context;
    std::vector<Tensor> outputs;
    std::vector<void*> targets;
  };
  std::vector<Tensor> inputs_;
  std::vector<const void*> sources_;
  std::vector<Lane> lanes_;
};

}  // namespace tenon
