#pragma once

#include "frontends/numpy/npz.h"
#include "passes/train/stateful_graph.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// What labels may be.
struct LabelRules {
  /// 0: they are not looked at
  std::int64_t class_count = 0;
  /// a label that is no class
  std::optional<std::int64_t> ignored;
  /// Of sequences: labels, none of them `blank`, then negative numbers; `step_count` steps are
  /// enough for them, with one more between two that are alike.
  struct Sequence {
    std::int64_t blank = 0, step_count = 0;
  };
  std::optional<Sequence> sequence = {};
};

/// Samples to train on: for each input of a step, states aside, a tensor with an axis that counts
/// them.
class DataSet {
 public:
  /// By the names of inputs, the axis that counts samples.
  using Axes = std::map<std::string, std::size_t>;

  /// The arrays of a `.npz` file by the names of the graph's inputs, which is mapped: what is
  /// stored there unpacked is read, and brought to the graph's type, as it is used. Throws Error
  /// where an array is missing, has another shape or type than the input, where the numbers of
  /// samples differ or there is none, and where a label is no class.
  DataSet(const std::string& path, const StatefulGraph& step, const Axes& axes,
          const LabelRules& rules);
  /// Samples that can be learnt, made from a seed: the class of a sample is told by random
  /// directions.
  DataSet(const StatefulGraph& step, const Axes& axes, std::int64_t sample_count,
          const LabelRules& rules, std::uint64_t seed);

  std::int64_t size() const { return size_; }
  /// Samples [first, first + count) of an order, as the graph takes them, in the order of its
  /// inputs. Past the end of the order it starts again.
  std::vector<Tensor> batch(const std::vector<std::int64_t>& order, std::int64_t first,
                            std::int64_t count) const;
  /// The first samples for training and the last `share` of them for validation.
  std::pair<DataSet, DataSet> divided(double share) const;

 private:
  struct Array {
    std::string name;
    numpy::StoredArray samples;
    /// of the samples
    std::size_t axis = 0;
    /// that the graph takes them in
    DType dtype = DType::F32;
  };
  void add(std::string name, Tensor samples, std::size_t axis);
  void check(const Graph& step, const LabelRules& rules);

  std::vector<Array> arrays_;
  std::int64_t first_ = 0, size_ = 0;
};

/// The order of samples in an epoch: the same for the same seed, on every machine.
std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch);

/// Of each batch, the parts that one rank reads: `first`, `first + stride`, … of `count` parts.
struct BatchShare {
  std::int64_t count = 1, first = 0, stride = 1;
};

/// Makes batches in a thread of its own, a few ahead of who takes them.
class BatchLoader {
 public:
  /// From batch `first` of epoch `epoch` on, without end; the last samples of an epoch that fill no
  /// batch are left out.
  BatchLoader(const DataSet& data, std::int64_t batch_size, std::uint64_t seed, std::int64_t epoch,
              std::int64_t first, BatchShare share = {});
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;

  std::vector<Tensor> next();
  /// The parts of the next batch that the share has.
  std::vector<std::vector<Tensor>> next_parts();

 private:
  BatchShare share_;
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace tenon
