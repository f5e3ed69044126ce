#include "quantize/samples.h"

#include "base/error.h"
#include "base/text.h"
#include "diagnose/check.h"
#include "models/inputs.h"

#include <algorithm>
#include <filesystem>

namespace tenon::quantize {
namespace {

constexpr std::string_view kForms = "@DIR with a folder or .npz file for each sample, or random:N";

}  // namespace

CalibrationSamples::CalibrationSamples(const Graph& graph, const std::string& text)
    : graph_(graph) {
  constexpr std::int64_t kMost = 1'000'000;
  if (text.starts_with("random:")) {
    const auto count = parse_integer(text.substr(7));
    if (!count || *count < 1 || *count > kMost) {
      throw Error("--calibrate: no such number of samples", ErrorKind::Usage)
          .expected("random:N with N from 1 to ", kMost)
          .got(text);
    }
    is_random_ = true;
    for (std::int64_t k = 0; k < *count; ++k) names_.push_back(concat("random:", k + 1));
    return;
  }
  if (!text.starts_with("@")) {
    throw Error("--calibrate: no such samples", ErrorKind::Usage)
        .expected(kForms)
        .got(text.empty() ? "nothing" : text);
  }
  const std::filesystem::path folder = text.substr(1);
  std::error_code problem;
  if (!std::filesystem::is_directory(folder, problem)) {
    throw Error("--calibrate: no such folder", ErrorKind::Usage)
        .expected(kForms)
        .got(folder.string());
  }
  bool has_files = false;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".npz" || (entry.is_directory() && extension != ".items"))
      names_.push_back("@" + entry.path().string());
    has_files |= extension == ".npy" || extension == ".pb";
  }
  std::ranges::sort(names_);
  if (names_.empty() && has_files) names_.push_back("@" + folder.string());
  if (names_.empty()) {
    throw Error("--calibrate: the folder has no samples", ErrorKind::Usage)
        .expected(kForms)
        .got(folder.string());
  }
}

std::vector<Datum> CalibrationSamples::read(std::size_t k) const {
  if (is_random_) return models::random_inputs(graph_, 0x5eed + k, models::input_shapes(graph_));
  try {
    std::vector<Datum> inputs = models::read_inputs(graph_, {names_[k]});
    for (std::size_t at = 0; at < inputs.size(); ++at) {
      if (!inputs[at].is_tensor()) continue;
      const Value& input = graph_.value(graph_.inputs()[at]);
      if (const auto fault =
              diagnose::fault_in(inputs[at].tensor(), {.allows_non_finite = false})) {
        throw Error(concat("input '", input.name, "' is not finite"), ErrorKind::Usage)
            .expected("numbers")
            .got(fault->what);
      }
    }
    return inputs;
  } catch (Error& error) {
    error.hint("it is sample ", k + 1, " of ", size(), " for --calibrate: ", names_[k].substr(1));
    throw;
  }
}

}  // namespace tenon::quantize
