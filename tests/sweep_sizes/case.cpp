#include "case.h"

#include "base/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/input_extents.h"
#include "ir/text.h"
#include "layers.h"
#include "passes/gradient.h"
#include "testing/varied_extents.h"
#include "train/options.h"
#include "verify_passes/thin.h"
#include "zoo/zoo.h"

#include <algorithm>
#include <filesystem>

namespace tenon::testing {
namespace {

// A training step, or the gradients by the inputs.
void train(SizeCase& made, testing::Random& random) {
  made.family = "train " + made.family;
  if (random.chance(30)) {
    made.graph = passes::with_gradients(std::move(made.graph), {});
    return;
  }
  const std::vector<std::string> optimizers = {"sgd", "momentum", "adam", "adamw", "lamb"};
  const std::string optimizer = random.pick(optimizers);
  passes::StatefulGraph step = train::training_step(std::move(made.graph), optimizer,
                                                    made.family == "train zoo" ? "" : "mse", {});
  made.title += concat("\n# a training step by ", optimizer);
  declare_states(step, true);
  made.graph = std::move(step.graph);
}

SizeCase layers(const Family& family, testing::Random& random) {
  const bool trains = random.chance(20);
  SizeCase made{family.name, "", family.make(random, trains)};
  made.title = print(made.graph);
  if (trains) train(made, random);
  return made;
}

SizeCase network(testing::Random& random) {
  const zoo::Network& found = random.pick(zoo::networks());
  const bool trains = random.chance(20);
  std::string spec = found.name;
  for (const zoo::Parameter& parameter : found.parameters) {
    std::string value;
    if (parameter.name == "batch") {
      value = !trains && random.chance(30) ? "N"
              : random.chance(50)          ? std::to_string(random.between(1, 300))
                                           : std::to_string(std::int64_t{1} << random.below(9));
    } else if (parameter.name == "size") {
      const std::vector<std::int64_t> usual = {32, 64, 96, 128, 160, 192, 224, 256, 299};
      value = std::to_string(random.chance(50) ? random.pick(usual) : random.between(1, 40));
    } else if (parameter.name == "seq") {
      value = !trains && random.chance(30) ? "S" : std::to_string(random.between(1, 300));
    } else if (parameter.name == "past" && random.chance(50)) {
      value = random.chance(50) ? "P" : std::to_string(random.between(1, 40));
    } else if (parameter.name == "dtype" && random.chance(20)) {
      value = random.chance(50) ? "f16" : "bf16";
    } else if (parameter.name == "layout" && random.chance(30)) {
      value = "NHWC";
    }
    if (!value.empty())
      spec += concat(spec.find('?') == std::string::npos ? "?" : ",", parameter.name, "=", value);
  }
  const std::int64_t factors[] = {1, 2, 4, 8};
  const std::int64_t factor = factors[random.below(4)];
  SizeCase made{"zoo", "zoo:" + spec, zoo::build(spec)};
  if (factor > 1) {
    made.graph = thinned(made.graph, factor);
    made.title += concat("\n# with layers ", factor, " times thinner");
  }
  if (trains) train(made, random);
  return made;
}

// Another extent for an axis: the first is the batch of every input that shares it.
Dim varied_extent(const Dim& given, std::size_t axis, const std::string& input, std::int64_t batch,
                  bool is_symbolic, testing::Random& random) {
  const bool is_batch = axis == 0;
  if (is_symbolic)
    return is_batch            ? Dim::symbol("batch")
           : random.chance(50) ? Dim::symbol(concat(input, "_", axis))
                               : given;
  if (is_batch) return Dim(batch);
  if (!given.is_constant()) return Dim(random.between(1, 40));
  return random.chance(10) ? Dim(random.between(1, 40)) : given;
}

SizeCase onnx_file(const std::string& path, testing::Random& random) {
  SizeCase made{"onnx", path, frontends::onnx::import_onnx(path)};
  if (random.chance(15)) return made;
  std::vector<std::optional<Dims>> extents;
  if (random.chance(15)) {
    extents = testing::symbolic_extents(made.graph);
  } else {
    const bool is_symbolic = random.chance(25);
    const std::int64_t batch = random.between(1, 300);
    for (const ValueId id : made.graph.inputs()) {
      const Value& input = made.graph.value(id);
      if (!input.type.is_tensor()) {
        extents.emplace_back();
        continue;
      }
      Dims dims = input.type.tensor().dims;
      for (std::size_t axis = 0; axis < dims.size(); ++axis)
        dims[axis] = varied_extent(dims[axis], axis, input.name, batch, is_symbolic, random);
      extents.emplace_back(std::move(dims));
    }
  }
  for (const auto& dims : extents) made.title += dims ? " " + concat(*dims) : " -";
  made.graph = frontends::onnx::import_with_extents(path, extents);
  return made;
}

}  // namespace

CaseMaker::CaseMaker(const std::vector<std::string>& folders, std::uint64_t seed,
                     std::string filter)
    : seed_(seed) {
  namespace fs = std::filesystem;
  for (const std::string& folder : folders) {
    if (!fs::is_directory(folder))
      throw Error("there is no such folder", ErrorKind::Usage).got(folder);
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") onnx_files_.push_back(entry.path().string());
    }
  }
  std::ranges::sort(onnx_files_);
  // Small cases are more frequent.
  std::vector<std::string> all{"zoo"};
  for (int k = 0; k < 3; ++k) {
    for (const Family& family : layer_families()) all.push_back(family.name);
    all.insert(all.end(), {"images", "images", "sequences"});
    if (!onnx_files_.empty()) all.insert(all.end(), 3, "onnx");
  }
  for (const std::string& family : all) {
    if (family.find(filter) != std::string::npos) families_.push_back(family);
  }
  if (families_.empty())
    throw Error("no family of cases has this name", ErrorKind::Usage).got(filter);
}

std::uint64_t CaseMaker::seed_of(std::uint64_t number) const {
  return seed_ * 0x9e3779b97f4a7c15U + number;
}

SizeCase CaseMaker::make(std::uint64_t number) const {
  testing::Random random(seed_of(number));
  const std::string& family = random.pick(families_);
  if (family == "zoo") return network(random);
  if (family == "onnx") return onnx_file(random.pick(onnx_files_), random);
  const auto found = std::ranges::find(layer_families(), family, &Family::name);
  return layers(*found, random);
}

}  // namespace tenon::testing
