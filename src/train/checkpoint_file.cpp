#include "train/checkpoint_file.h"

#include "base/error.h"
#include "base/text.h"
#include "frontends/safetensors/safetensors.h"
#include "ir/text.h"
#include "program/checksum.h"

#include <cmath>
#include <cstring>

namespace tenon::train {
namespace {

constexpr const char* kCheckpointFormat = "tenon checkpoint 1";
constexpr const char* kCurve =
    "checkpoint/curve";  // f64[points, 4]: step, loss, accuracy, is validation
constexpr std::int64_t kCheckpointColumns = 4;
constexpr const char* kSums =
    "checkpoint/sums";  // f64[3] since the last training point: loss, accuracy, steps

std::string text_of(const Checkpoint& checkpoint,
                    const std::map<std::string, std::string>& metadata, const char* name) {
  const auto found = metadata.find(name);
  if (found != metadata.end()) return found->second;
  throw Error(concat("the checkpoint does not say its ", name))
      .got(checkpoint.states.size(), " tensors");
}

std::int64_t integer_of(const Checkpoint& checkpoint,
                        const std::map<std::string, std::string>& metadata, const char* name) {
  const std::string text = text_of(checkpoint, metadata, name);
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number < 0)
    throw Error(concat("the checkpoint's ", name, " is no number")).got(text);
  return *number;
}

Tensor curve_tensor(const std::vector<CurvePoint>& points) {
  Tensor curve(DType::F64, {static_cast<std::int64_t>(points.size()), kCheckpointColumns});
  for (std::size_t k = 0; k < points.size(); ++k) {
    const CurvePoint& point = points[k];
    const double row[] = {static_cast<double>(point.step), point.loss, point.accuracy,
                          point.is_validation ? 1.0 : 0.0};
    for (std::int64_t column = 0; column < kCheckpointColumns; ++column) {
      curve.set_real(static_cast<std::int64_t>(k) * kCheckpointColumns + column, row[column]);
    }
  }
  return curve;
}

std::vector<CurvePoint> curve_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::F64 || tensor.rank() != 2 ||
      tensor.shape()[1] != kCheckpointColumns) {
    throw Error("the checkpoint's curve is none").got(tensor.type());
  }
  std::vector<CurvePoint> points;
  for (std::int64_t k = 0; k < tensor.shape()[0]; ++k) {
    const auto at = [&](std::int64_t column) {
      return tensor.real_at(k * kCheckpointColumns + column);
    };
    points.push_back({static_cast<std::int64_t>(at(0)), at(1), at(2), at(3) != 0});
  }
  return points;
}

CurveSums sums_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::F64 || tensor.shape() != Shape{3})
    throw Error("the checkpoint's sums are none").expected("f64[3]").got(tensor.type());
  return {tensor.real_at(0), tensor.real_at(1), static_cast<std::int64_t>(tensor.real_at(2))};
}

// Returns a checksum of the metadata and of every tensor's bytes.
std::string checksum_of(const frontends::SafeTensors& content) {
  std::string sums;
  for (const auto& [key, value] : content.metadata) {
    if (key != "checksum") sums += concat(key, "=", value, ";");
  }
  for (const auto& [name, tensor] : content.tensors) {
    sums += concat(name, ":", to_string(tensor.type()), ":", checksum(tensor.bytes()), ";");
  }
  return std::to_string(checksum(std::as_bytes(std::span(sums))));
}

}  // namespace

std::string hash_of(const passes::StatefulGraph& step) {
  const std::string text = print(step);
  return std::to_string(checksum(std::as_bytes(std::span(text))));
}

void write_checkpoint_file(const Checkpoint& checkpoint, const std::string& path,
                           const std::map<std::string, std::string>& more) {
  frontends::SafeTensors content;
  content.tensors = checkpoint.states;
  content.tensors.emplace_back(kCurve, curve_tensor(checkpoint.curve));
  const CurveSums& sums = checkpoint.sums;
  content.tensors.emplace_back(
      kSums, Tensor::of<double>(DType::F64, {3},
                                {sums.loss, sums.accuracy, static_cast<double>(sums.count)}));
  content.metadata = {{"format", kCheckpointFormat},
                      {"step", std::to_string(checkpoint.step)},
                      {"batch_size", std::to_string(checkpoint.batch_size)},
                      {"seed", std::to_string(checkpoint.seed)},
                      {"sample_count", std::to_string(checkpoint.sample_count)},
                      {"parts", std::to_string(checkpoint.micro_batches)},
                      {"step_hash", checkpoint.step_hash}};
  content.metadata.insert(more.begin(), more.end());
  content.metadata["checksum"] = checksum_of(content);
  frontends::write_safetensors_file(content, path);
}

Checkpoint read_checkpoint_file(const std::string& path,
                                std::map<std::string, std::string>* metadata) {
  frontends::SafeTensors content = frontends::read_safetensors_file(path);
  try {
    Checkpoint checkpoint;
    const auto format = content.metadata.find("format");
    if (format == content.metadata.end() || format->second != kCheckpointFormat) {
      throw Error("this is no checkpoint")
          .expected(kCheckpointFormat)
          .got(format == content.metadata.end() ? "no format" : format->second);
    }
    checkpoint.step = integer_of(checkpoint, content.metadata, "step");
    checkpoint.batch_size = integer_of(checkpoint, content.metadata, "batch_size");
    checkpoint.seed = static_cast<std::uint64_t>(integer_of(checkpoint, content.metadata, "seed"));
    checkpoint.sample_count = integer_of(checkpoint, content.metadata, "sample_count");
    if (content.metadata.contains("parts"))  // older files lack it
      checkpoint.micro_batches = integer_of(checkpoint, content.metadata, "parts");
    checkpoint.step_hash = text_of(checkpoint, content.metadata, "step_hash");
    if (text_of(checkpoint, content.metadata, "checksum") != checksum_of(content)) {
      throw Error("the checkpoint is damaged: its bytes are not those that were written");
    }
    for (auto& [name, tensor] : content.tensors) {
      if (name == kCurve) {
        checkpoint.curve = curve_of(tensor);
      } else if (name == kSums) {  // older files lack it
        checkpoint.sums = sums_of(tensor);
      } else {
        checkpoint.states.emplace_back(name, tensor);
      }
    }
    if (metadata != nullptr) *metadata = content.metadata;
    return checkpoint;
  } catch (Error& error) {
    throw error.at(path);
  }
}

}  // namespace tenon::train
