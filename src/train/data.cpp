#include "train/data.h"

#include "base/error.h"
#include "base/text.h"
#include "ops/families/tensor_parts.h"
#include "passes/train/train.h"
#include "testing/random.h"

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace tenon::train {
namespace {

constexpr std::size_t kBatchesAhead = 3;

std::vector<ValueId> data_inputs(const passes::StatefulGraph& step) {
  std::vector<ValueId> inputs;
  for (std::size_t k : step.data_inputs()) inputs.push_back(step.graph.inputs()[k]);
  return inputs;
}

void require_samples(const Graph& step, ValueId input) {
  const Value& value = step.value(input);
  if (value.type.tensor().rank() > 0) return;
  throw Error(concat("input '", value.name, "' has no axis of samples"), ErrorKind::Unsupported)
      .got(value.type);
}

}  // namespace

DataSet::DataSet(const std::string& path, const passes::StatefulGraph& step, const Axes& axes,
                 const LabelRules& rules) try {
  std::map<std::string, frontends::numpy::StoredArray> arrays =
      frontends::numpy::stored_npz_file(path);
  for (ValueId input : data_inputs(step)) {
    const Value& value = step.graph.value(input);
    const auto found = arrays.find(value.name);
    if (found == arrays.end()) {
      std::vector<std::string> names;
      for (const auto& [name, array] : arrays) names.push_back(name);
      throw Error(concat("the data has no array '", value.name, "'"), ErrorKind::Usage)
          .expected(value.type)
          .got(names.empty() ? std::string("no arrays") : join(names, ", "));
    }
    require_samples(step.graph, input);
    arrays_.push_back({value.name, found->second, axes.at(value.name), value.type.tensor().dtype});
  }
  check(step.graph, rules);
} catch (Error& error) {
  if (!error.has_place()) error.at(path);
  throw;
}

void DataSet::add(std::string name, Tensor samples, std::size_t axis) {
  const auto held = std::make_shared<const Tensor>(std::move(samples));
  arrays_.push_back(
      {std::move(name), {held->dtype(), held->shape(), held->bytes(), held}, axis, held->dtype()});
}

namespace {

// Converts the whole array to another type.
Tensor whole(const frontends::numpy::StoredArray& array, DType dtype) {
  Tensor tensor(array.dtype, array.shape);
  if (!array.bytes.empty())
    std::memcpy(tensor.mutable_bytes().data(), array.bytes.data(), array.bytes.size());
  return tensor.converted(dtype);
}

void check_classes(const Tensor& labels, std::size_t axis, const LabelRules& rules) {
  const std::int64_t count = labels.shape()[axis];
  for (std::int64_t k = 0; k < labels.size(); ++k) {
    const std::int64_t label = labels.integer_at(k);
    if ((label >= 0 && label < rules.class_count) || label == rules.ignored) continue;
    throw Error("a label is no class of the model", ErrorKind::Usage)
        .at("array 'target', sample ", k / rows_around(labels.shape(), axis).inner % count)
        .expected("0 to ", rules.class_count - 1)
        .got(label);
  }
}

// Checks one row of labels per sample.
void check_sequences(const Tensor& labels, const LabelRules& rules) {
  const std::int64_t width = labels.shape().back();
  for (std::int64_t sample = 0; sample < labels.shape().front(); ++sample) {
    std::int64_t before = -1, steps = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      const std::int64_t label = labels.integer_at(sample * width + k);
      const bool is_class =
          label >= 0 && label < rules.class_count && label != rules.sequence->blank;
      if (!(is_class || label < 0) || (label >= 0 && k > 0 && before < 0)) {
        throw Error("labels of a sequence are classes, then negative numbers", ErrorKind::Usage)
            .at("array 'target', sample ", sample)
            .expected("0 to ", rules.class_count - 1, " without the blank ", rules.sequence->blank)
            .got(label, " at ", k);
      }
      if (label >= 0) steps += label == before ? 2 : 1;
      before = label;
    }
    if (steps > rules.sequence->step_count) {
      throw Error("a sample has more labels than the model has steps for", ErrorKind::Usage)
          .at("array 'target', sample ", sample)
          .expected("labels for ", rules.sequence->step_count, " steps")
          .got("labels that take ", steps);
    }
  }
}

}  // namespace

void DataSet::check(const Graph& step, const LabelRules& rules) {
  for (Array& array : arrays_) {
    const TensorType& type = step.value(step.find(array.name)).type.tensor();
    Shape expected = constants(type.dims);
    const Shape& shape = array.samples.shape;
    if (shape.size() == expected.size()) expected[array.axis] = shape[array.axis];
    if (shape != expected) {
      throw Error(concat("array '", array.name, "' does not fit the model"), ErrorKind::Usage)
          .expected(type, ", axis ", array.axis, " of any extent")
          .got(TensorType{array.samples.dtype, Dims(shape.begin(), shape.end()), {}});
    }
    if (is_integer(array.samples.dtype) != is_integer(type.dtype)) {
      throw Error(concat("array '", array.name, "' has the wrong element type"), ErrorKind::Usage)
          .expected(type.dtype)
          .got(array.samples.dtype);
    }
    const std::int64_t count = shape[array.axis];
    if (&array != arrays_.data() && count != size_) {
      throw Error("the data has different numbers of samples", ErrorKind::Usage)
          .got(size_, " in '", arrays_.front().name, "', ", count, " in '", array.name, "'");
    }
    size_ = count;
    if (array.name != passes::kTarget || rules.class_count == 0) continue;
    if (rules.sequence) {
      check_sequences(whole(array.samples, type.dtype), rules);
    } else {
      check_classes(whole(array.samples, type.dtype), array.axis, rules);
    }
  }
  if (size_ == 0) throw Error("the data has no samples", ErrorKind::Usage);
}

DataSet::DataSet(const passes::StatefulGraph& step, const Axes& axes, std::int64_t sample_count,
                 const LabelRules& rules, std::uint64_t seed)
    : size_(sample_count) {
  // Features are noise around a centre per class, so that the task can be learnt.
  const std::int64_t classes =
      std::max<std::int64_t>(1, rules.class_count - (rules.sequence ? 1 : 0));
  const Tensor labels =
      Constant::uniform(DType::I64, {sample_count}, seed, 0, static_cast<double>(classes - 1))
          .materialise();
  std::uint64_t stream = seed * 7919 + 1;
  for (ValueId input : data_inputs(step)) {
    const Value& value = step.graph.value(input);
    const TensorType& type = value.type.tensor();
    require_samples(step.graph, input);
    const std::size_t axis = axes.at(value.name);
    Shape shape = constants(type.dims);
    shape[axis] = sample_count;
    Tensor samples(type.dtype, shape);
    const std::int64_t per_sample = samples.size() / std::max<std::int64_t>(1, sample_count);
    const Rows rows = rows_around(shape, axis);
    const auto sample_of = [&](std::int64_t k) { return k / rows.inner % sample_count; };
    const auto place_of = [&](std::int64_t k) {
      return k / (rows.inner * sample_count) * rows.inner + k % rows.inner;
    };
    ++stream;
    if (value.name == passes::kTarget && rules.sequence) {
      for (std::int64_t k = 0; k < samples.size(); ++k) {  // one label each
        const std::int64_t label = labels.integer_at(sample_of(k));
        samples.set_integer(k, place_of(k) > 0 ? -1 : label + (label >= rules.sequence->blank));
      }
    } else if (value.name == passes::kTarget && rules.class_count > 0) {
      for (std::int64_t k = 0; k < samples.size(); ++k)
        samples.set_integer(k, labels.integer_at(sample_of(k)));
    } else if (is_float(type.dtype)) {
      const Tensor centres =
          Constant::normal(DType::F32, {classes, per_sample}, stream, 0, 1).materialise();
      const Tensor noise =
          Constant::normal(DType::F32, {sample_count, per_sample}, stream + 100, 0, 1)
              .materialise();
      const auto centre = centres.as<float>(), around = noise.as<float>();
      for (std::int64_t k = 0; k < samples.size(); ++k) {
        const std::int64_t of = labels.integer_at(sample_of(k)) * per_sample + place_of(k);
        samples.set_real(
            k, centre[static_cast<std::size_t>(of)] + around[static_cast<std::size_t>(k)]);
      }
    } else {
      samples = Constant::uniform(type.dtype, shape, stream, 0, 1).materialise();
    }
    add(value.name, std::move(samples), axis);
  }
}

std::vector<Tensor> DataSet::batch(const std::vector<std::int64_t>& order, std::int64_t first,
                                   std::int64_t count) const {
  std::vector<Tensor> tensors;
  for (const Array& array : arrays_) {
    Shape shape = array.samples.shape;
    shape[array.axis] = count;
    Tensor batch(array.samples.dtype, shape);
    const Rows rows = rows_around(shape, array.axis);
    const auto row_bytes = static_cast<std::size_t>(rows.inner) * info(batch.dtype()).storage_bytes;
    const auto sample_count = static_cast<std::size_t>(array.samples.shape[array.axis]);
    std::byte* to = batch.mutable_bytes().data();
    const std::byte* from = array.samples.bytes.data();
    for (std::size_t row = 0; row < static_cast<std::size_t>(rows.count); ++row) {
      for (std::int64_t k = 0; k < count; ++k, to += row_bytes) {
        const auto sample =
            static_cast<std::size_t>(first_ + order[static_cast<std::size_t>((first + k) % size_)]);
        std::memcpy(to, from + (row * sample_count + sample) * row_bytes, row_bytes);
      }
    }
    tensors.push_back(batch.dtype() == array.dtype ? std::move(batch)
                                                   : batch.converted(array.dtype));
  }
  return tensors;
}

std::pair<DataSet, DataSet> DataSet::divided(double share) const {
  const auto held_out = static_cast<std::int64_t>(std::llround(static_cast<double>(size_) * share));
  std::pair<DataSet, DataSet> micro_batches(*this, *this);
  micro_batches.first.size_ = size_ - held_out;
  micro_batches.second.first_ = first_ + size_ - held_out;
  micro_batches.second.size_ = held_out;
  return micro_batches;
}

std::vector<std::int64_t> shuffled(std::int64_t count, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k);
  testing::Random random(seed * 1000003 + static_cast<std::uint64_t>(epoch));
  for (std::size_t k = order.size(); k > 1; --k) std::swap(order[k - 1], order[random.below(k)]);
  return order;
}

struct BatchLoader::Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<Tensor>> ready;
  std::exception_ptr failure;
  bool is_closed = false;
  std::thread thread;

  void fill(const DataSet& data, std::int64_t batch_size, std::uint64_t seed, std::int64_t epoch,
            std::int64_t at, const BatchShare& share) try {
    const std::int64_t micro_batch_size = batch_size / share.count;
    const std::int64_t per_epoch = data.size() / batch_size;
    for (;; ++epoch, at = 0) {
      const std::vector<std::int64_t> order = shuffled(data.size(), seed, epoch);
      for (; at < per_epoch; ++at) {
        for (std::int64_t part = share.first; part < share.count; part += share.stride) {
          std::vector<Tensor> batch =
              data.batch(order, at * batch_size + part * micro_batch_size, micro_batch_size);
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return is_closed || ready.size() < kBatchesAhead; });
          if (is_closed) return;
          ready.push_back(std::move(batch));
          changed.notify_all();
        }
      }
    }
  } catch (...) {
    const std::scoped_lock lock(mutex);
    failure = std::current_exception();
    changed.notify_all();
  }
};

BatchLoader::BatchLoader(const DataSet& data, std::int64_t batch_size, std::uint64_t seed,
                         std::int64_t epoch, std::int64_t first, BatchShare share)
    : share_(share), queue_(std::make_unique<Queue>()) {
  if (data.size() < batch_size) {
    throw Error("the data has fewer samples than a batch", ErrorKind::Usage)
        .got(data.size(), " samples, batches of ", batch_size);
  }
  queue_->thread =
      std::thread([queue = queue_.get(), &data, batch_size, seed, epoch, first, share] {
        queue->fill(data, batch_size, seed, epoch, first, share);
      });
}

BatchLoader::~BatchLoader() {
  {
    const std::scoped_lock lock(queue_->mutex);
    queue_->is_closed = true;
  }
  queue_->changed.notify_all();
  queue_->thread.join();
}

std::vector<std::vector<Tensor>> BatchLoader::next_micro_batches() {
  std::vector<std::vector<Tensor>> micro_batches;
  for (std::int64_t part = share_.first; part < share_.count; part += share_.stride)
    micro_batches.push_back(next());
  return micro_batches;
}

std::vector<Tensor> BatchLoader::next() {
  std::unique_lock lock(queue_->mutex);
  queue_->changed.wait(lock, [&] { return queue_->failure || !queue_->ready.empty(); });
  if (queue_->failure) std::rethrow_exception(queue_->failure);
  std::vector<Tensor> batch = std::move(queue_->ready.front());
  queue_->ready.pop_front();
  queue_->changed.notify_all();
  return batch;
}

}  // namespace tenon::train
