#pragma once

#include "ir/tensor.h"
#include "runtime/executor.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace tenon::inline host {

/// Contexts of one program kept in flight by a single thread: while one waits for its outputs, the
/// others run.
class InFlight {
 public:
  /// All contexts use the same inputs, in pageable host memory.
  InFlight(const std::shared_ptr<const Executable>& model, int thread_count,
           const std::vector<Tensor>& inputs, std::size_t count);

  /// Runs that many times in total, round robin, after one warm-up run of each context. Returns the
  /// seconds.
  double run(std::size_t runs);
  std::size_t count() const { return lanes_.size(); }

 private:
  struct Lane {
    Executor context;
    std::vector<Tensor> outputs;
    std::vector<void*> targets;
  };
  std::vector<Tensor> inputs_;
  std::vector<const void*> sources_;
  std::vector<Lane> lanes_;
};

}  // namespace tenon::inline host
