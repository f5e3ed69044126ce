#include "distributed/batch_run.h"

#include "base/error.h"
#include "base/new_file.h"
#include "base/text.h"
#include "driver/compile.h"
#include "frontends/numpy/npz.h"
#include "host/compiled.h"
#include "models/rebatch.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace tenon::distributed {
namespace {

constexpr std::int64_t kUsualBatch = 32;

// Returns the batch if it is static.
std::optional<std::int64_t> stated_batch(const Graph& model) {
  const std::optional<Dim> batch = models::batch_of(model);
  return batch && batch->is_constant() ? std::optional(batch->constant()) : std::nullopt;
}

class BatchRunner {
 public:
  BatchRunner(const Graph& model, const BatchRunOptions& options)
      : batch_(options.batch > 0 ? options.batch : stated_batch(model).value_or(kUsualBatch)),
        graph_(models::rebatched(model, batch_)),
        compiled_(driver::compile_graph(graph_, options.target), options.thread_count) {
    if (const std::size_t axis = models::batch_axis(model); axis != 0) {
      throw Error("samples of a recurrent model lie along another axis than the first",
                  ErrorKind::Unsupported)
          .expected("a batch in axis 0 of each input")
          .got("axis ", axis)
          .hint("run one batch at a time with --input");
    }
    for (ValueId output : graph_.outputs()) {
      const Type& type = graph_.value(output).type;
      const bool has_samples =
          type.is_tensor() && type.tensor().rank() > 0 && type.tensor().dims.front() == Dim(batch_);
      if (has_samples) continue;
      throw Error(concat("output '", graph_.value(output).name, "' has no axis of samples"),
                  ErrorKind::Unsupported)
          .got(type)
          .expected("a first axis of ", batch_);
    }
  }

  // Returns the outputs for all samples of a file; sets `count` to their number.
  std::vector<std::pair<std::string, Tensor>> run(const std::map<std::string, Tensor>& arrays,
                                                  std::int64_t& count) {
    const std::vector<Tensor> inputs = checked(arrays, count);
    std::vector<std::pair<std::string, Tensor>> results;
    for (std::int64_t first = 0; first < count; first += batch_) {
      std::vector<Datum> some;
      for (const Tensor& all : inputs) some.emplace_back(samples(all, first));
      const std::vector<Datum> made = compiled_.run(some);
      for (std::size_t k = 0; k < made.size(); ++k) {
        const Tensor& part = made[k].tensor();
        if (first == 0) {
          Shape shape = part.shape();
          shape[0] = count;
          results.emplace_back(graph_.value(graph_.outputs()[k]).name, Tensor(part.dtype(), shape));
        }
        const std::size_t row = part.byte_size() / static_cast<std::size_t>(batch_);
        const auto rows = static_cast<std::size_t>(std::min(batch_, count - first));
        if (row > 0) {
          std::memcpy(
              results[k].second.mutable_bytes().data() + static_cast<std::size_t>(first) * row,
              part.bytes().data(), rows * row);
        }
      }
    }
    return results;
  }

 private:
  std::vector<Tensor> checked(const std::map<std::string, Tensor>& arrays,
                              std::int64_t& count) const {
    std::vector<Tensor> inputs;
    for (ValueId id : graph_.inputs()) {
      const Value& value = graph_.value(id);
      const auto found = arrays.find(value.name);
      if (found == arrays.end()) {
        std::vector<std::string> names;
        for (const auto& [name, tensor] : arrays) names.push_back(name);
        throw Error(concat("the data has no array '", value.name, "'"), ErrorKind::Usage)
            .expected(value.type)
            .got(names.empty() ? "no arrays" : join(names, ", "));
      }
      Shape expected = constants(value.type.tensor().dims);
      const Shape& shape = found->second.shape();
      if (shape.size() == expected.size() && !shape.empty()) expected[0] = shape[0];
      if (shape != expected || found->second.dtype() != value.type.tensor().dtype) {
        throw Error(concat("array '", value.name, "' does not fit the model"), ErrorKind::Usage)
            .expected(value.type, ", the first axis of any extent")
            .got(found->second.type());
      }
      if (!inputs.empty() && shape[0] != count) {
        throw Error("the data has different numbers of samples", ErrorKind::Usage)
            .got(count, " and, in '", value.name, "', ", shape[0]);
      }
      count = shape[0];
      inputs.push_back(found->second);
    }
    if (count == 0) throw Error("the data has no samples", ErrorKind::Usage);
    return inputs;
  }

  // Returns the batch that starts at `first`, padded by repeating the last sample; results for
  // padding are dropped.
  Tensor samples(const Tensor& all, std::int64_t first) const {
    Shape shape = all.shape();
    const std::int64_t count = shape[0];
    shape[0] = batch_;
    Tensor some(all.dtype(), shape);
    const std::size_t row = all.byte_size() / static_cast<std::size_t>(count);
    for (std::int64_t k = 0; k < batch_ && row > 0; ++k) {
      const auto from = static_cast<std::size_t>(std::min(first + k, count - 1));
      std::memcpy(some.mutable_bytes().data() + static_cast<std::size_t>(k) * row,
                  all.bytes().data() + from * row, row);
    }
    return some;
  }

  std::int64_t batch_;
  Graph graph_;
  CompiledModel compiled_;
};

void write_index(const Shards& shards, const std::string& output) {
  nlohmann::ordered_json json{{"samples", 0}, {"shards", nlohmann::ordered_json::array()}};
  std::int64_t total = 0;
  for (const std::string& name : shards.names()) {
    const std::map<std::string, Tensor> arrays =
        frontends::numpy::read_npz_file(shards.result_path(name));
    const std::int64_t count = arrays.empty() ? 0 : arrays.begin()->second.shape().at(0);
    json["shards"].push_back({{"file", name}, {"first", total}, {"samples", count}});
    total += count;
  }
  json["samples"] = total;
  NewFile file((std::filesystem::path(output) / "index.json").string());
  file.out() << json.dump(2) << "\n";
  file.finish();
}

}  // namespace

BatchRunResult run_shards(Graph model, Shards& shards, const std::string& output,
                          const BatchRunOptions& options,
                          const std::function<void(const std::string& shard)>& on_shard,
                          const std::function<bool()>& should_stop) {
  BatchRunner runner(model, options);
  BatchRunResult result;
  while (const std::optional<std::string> name = shards.take(should_stop)) {
    std::int64_t count = 0;
    try {
      frontends::numpy::write_npz_file(
          runner.run(frontends::numpy::read_npz_file(shards.input_path(*name)), count),
          shards.result_path(*name));
    } catch (Error& error) {
      if (!error.has_place()) error.at(shards.input_path(*name));
      throw;
    }
    shards.release(*name);
    ++result.shards;
    result.samples += count;
    on_shard(*name);
  }
  result.is_complete = shards.done_count() == shards.count();
  if (result.is_complete) write_index(shards, output);
  return result;
}

}  // namespace tenon::distributed
