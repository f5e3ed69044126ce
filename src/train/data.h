#pragma once

#include "frontends/numpy/npz.h"
#include "passes/train/stateful_graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::train {

/// Valid labels.
struct LabelRules {
  /// 0: labels are not checked
  std::int64_t class_count = 0;
  /// a label that is not a class
  std::optional<std::int64_t> ignored;
  /// For sequences: labels other than `blank`, padded with negative numbers; `step_count` steps
  /// must suffice for them, with an additional one between two equal labels.
  struct Sequence {
    std::int64_t blank = 0, step_count = 0;
  };
  std::optional<Sequence> sequence = {};
};

/// Training samples: for each data input of a step, a tensor with a sample axis.
class DataSet {
 public:
  /// Sample axis by input name.
  using Axes = std::map<std::string, std::size_t>;

  /// Maps a `.npz` file whose arrays have the names of the graph's inputs: uncompressed arrays are
  /// read, and converted to the graph's type, on use. Throws Error if an array is missing or has
  /// another shape or type than the input, if the numbers of samples differ or are zero, and if a
  /// label is not a class.
  DataSet(const std::string& path, const passes::StatefulGraph& step, const Axes& axes,
          const LabelRules& rules);
  /// Generates learnable samples from a seed: random directions determine the class of a sample.
  DataSet(const passes::StatefulGraph& step, const Axes& axes, std::int64_t sample_count,
          const LabelRules& rules, std::uint64_t seed);

  std::int64_t size() const { return size_; }
  /// Returns samples [first, first + count) of an order, as tensors in the order and types of the
  /// graph's inputs. Wraps around at the end of the order.
  std::vector<Tensor> batch(const std::vector<std::int64_t>& order, std::int64_t first,
                            std::int64_t count) const;
  /// Splits off the last `share` of the samples for validation.
  std::pair<DataSet, DataSet> divided(double share) const;

 private:
  struct Array {
    std::string name;
    frontends::numpy::StoredArray samples;
    /// of the samples
    std::size_t axis = 0;
    /// element type of the graph's input
    DType dtype = DType::F32;
  };
  void add(std::string name, Tensor samples, std::size_t axis);
  void check(const Graph& step, const LabelRules& rules);

  std::vector<Array> arrays_;
  std::int64_t first_ = 0, size_ = 0;
};

/// Returns the order of samples in an epoch: deterministic in the seed on every machine.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// The parts of each batch that one rank reads: `first`, `first + stride`, … of `count` parts.
struct BatchShare {
  std::int64_t count = 1, first = 0, stride = 1;
};

/// Prefetches batches in a separate thread.
class BatchLoader {
 public:
  /// Starts at batch `first` of epoch `epoch` and continues endlessly; drops the last samples of an
  /// epoch that do not fill a batch.
  BatchLoader(const DataSet& data, std::int64_t batch_size, std::uint64_t seed, std::int64_t epoch,
              std::int64_t first, BatchShare share = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;

  std::vector<Tensor> next();
  /// Returns the parts of the next batch that belong to the share.
  std::vector<std::vector<Tensor>> next_micro_batches();

 private:
  BatchShare share_;
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace tenon::train
