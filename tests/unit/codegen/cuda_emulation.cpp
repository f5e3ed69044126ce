#include "cuda_emulation.h"

#include "base/error.h"
#include "driver/compile.h"
#include "driver/pipeline.h"
#include "emulated_library.h"
#include "fixtures/emulated_map.h"
#include "host/program_types.h"
#include "ir/text.h"
#include "models/inputs.h"
#include "ops/definition/registry.h"
#include "reference/evaluate.h"
#include "runtime/executor.h"
#include "testing/verify/agreement.h"
#include "testing/verify/trial_inputs.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>

namespace tenon::testing {
namespace {

namespace fs = std::filesystem;

using Kernel = void (*)(void** buffers, const long long* extents, unsigned char* scratch,
                        long long* error, unsigned blocks, const unsigned char* maps);

// Temporary folder of emulated kernels: inherited from the parent process through the environment,
// otherwise created here and removed at exit.
struct Folder {
  fs::path path;
  bool is_own = true;
  Folder() {
    if (const char* given = std::getenv(kKernelFolder)) {
      path = given;
      is_own = false;
      return;
    }
    std::string name = (fs::temp_directory_path() / "tenon-emulation-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error("no temporary folder");
    path = name;
  }
  ~Folder() {
    if (is_own) fs::remove_all(path);
  }
};

EmulatedMap emulated_map(const Program::TensorMap& map, std::int64_t rows, void* address,
                         std::uint32_t element_bytes) {
  EmulatedMap made;
  made.address = reinterpret_cast<std::uint64_t>(address);
  made.axes = static_cast<std::uint32_t>(map.box.size());
  made.element_bytes = element_bytes;
  for (std::size_t k = 0; k < map.box.size(); ++k) {
    const bool is_inside = k < map.extents.size();
    made.extents[k] = is_inside ? map.extents[k] : static_cast<std::uint64_t>(rows);
    if (is_inside) made.pitch_bytes[k] = map.pitches[k] * element_bytes;
    made.box[k] = static_cast<std::uint16_t>(map.box[k]);
    made.steps[k] = static_cast<std::uint16_t>(map.steps[k]);
  }
  made.has_corners = !map.before.empty();
  for (std::size_t k = 0; k < map.before.size(); ++k) {
    made.lower[k] = static_cast<std::int8_t>(-static_cast<std::int64_t>(map.before[k]));
    made.upper[k] = static_cast<std::int8_t>(Program::last_place(map, k));
  }
  return made;
}

class EmulatedContext : public DeviceContext {
 public:
  EmulatedContext(const Program& program, const std::vector<Kernel>& kernels)
      : program_(program), kernels_(kernels) {}

  void prepare(const BoundShapes& shapes, const Segment&) override {
    if (!program_.transfers.empty()) throw Error("nothing is copied beside steps here");
    shapes_ = &shapes;
    arena_.resize(shapes.planned_bytes + 64);
  }

  void run(std::span<const void* const> inputs, std::span<void* const> outputs,
           std::span<double>) override {
    std::ranges::fill(arena_, std::byte{0x7b});
    long long error = 0;
    std::size_t called = 0;
    for (std::size_t number = 0; number < program_.steps.size(); ++number) {
      for (; called < marks_.size() && marks_[called] < number; ++called) call_(marks_[called]);
      const Program::Step& step = program_.steps[number];
      if (!shapes_->runs(step)) continue;
      const Program::Kernel& kernel = program_.kernels[step.kernel];
      std::vector<void*> buffers;
      for (const std::uint32_t id : step.buffers) {
        const Program::Buffer& buffer = program_.buffers[id];
        switch (buffer.place) {
          case Program::BufferKind::Input:
            buffers.push_back(const_cast<void*>(inputs[buffer.offset]));
            break;  // NOLINT: only read
          case Program::BufferKind::Output:
            buffers.push_back(outputs[buffer.offset]);
            break;
          case Program::BufferKind::Constant:
            buffers.push_back(const_cast<std::byte*>(program_.constants.get() + buffer.offset));
            break;  // NOLINT
          default:
            buffers.push_back(aligned() + shapes_->offsets[id]);
            break;
        }
      }
      std::vector<long long> extents;
      for (const Extent& extent : step.extents) extents.push_back(extent.value(shapes_->symbols));
      if (!kernel.library.empty()) {
        run_library(parse_library_call(kernel.library), extents, buffers);
        continue;
      }
      auto blocks = static_cast<unsigned>(step.work.value(shapes_->symbols));
      std::vector<unsigned char> maps;
      for (const Program::TensorMap& map : kernel.maps) {
        maps.resize(maps.size() + kMapBytes);
        const EmulatedMap made =
            emulated_map(map, map.rows.value(shapes_->symbols), buffers[map.buffer],
                         program_.buffers[step.buffers[map.buffer]].element_bytes);
        std::memcpy(maps.data() + maps.size() - kMapBytes, &made, sizeof made);
      }
      // Emulates a device with few multiprocessors: a block processes several tiles.
      if (kernel.cluster == 0) blocks = (blocks + 2) / 3;
      std::vector<unsigned char> scratch(
          static_cast<std::size_t>(kernel.scratch_bytes.value(shapes_->symbols)) * blocks + 64);
      // The kernels of a library share the variables that hold the thread's index.
      static std::mutex one_at_a_time;
      const std::scoped_lock lock(one_at_a_time);
      kernels_[step.kernel](buffers.data(), extents.data(), scratch.data(), &error, blocks,
                            maps.data());
    }
    for (; called < marks_.size(); ++called) call_(marks_[called]);
    if (error < 0) throw Error("threads of a kernel wait for what never comes");
    if (error != 0)
      throw Error(program_.kernels.front().checks.at(static_cast<std::size_t>(error - 1)));
  }
  void call_after(std::vector<std::size_t> steps, std::function<void(std::size_t)> call) override {
    marks_ = std::move(steps);
    call_ = std::move(call);
  }
  void fetch_output(std::size_t, void*) override { throw Error("no outputs are kept here"); }
  double replay() override { return 0; }
  std::vector<TimedCandidates> time_candidates(const std::vector<bool>&) override { return {}; }
  double time_steps(std::size_t, std::size_t) override { return 0; }
  std::uint64_t arena_bytes() const override { return arena_.size(); }
  std::uint64_t scratch_bytes() const override { return 0; }

 private:
  std::byte* aligned() {
    const auto address = reinterpret_cast<std::uintptr_t>(arena_.data());
    return arena_.data() + (64 - address % 64) % 64;
  }

  const Program& program_;
  const std::vector<Kernel>& kernels_;
  const BoundShapes* shapes_ = nullptr;
  std::vector<std::byte> arena_;
  std::vector<std::size_t> marks_;
  std::function<void(std::size_t)> call_;
};

// Cache of libraries by kernel source. Ranks that are threads of one process share them, and so do
// processes with one folder.
class Libraries {
 public:
  std::string path_of(const std::string& code) {
    const std::scoped_lock lock(mutex_);
    std::string& path = paths_[code];
    if (path.empty()) path = compiled(code);
    return path;
  }
  std::string new_path(const std::string& name) const { return folder_.path / name; }

 private:
  std::string compiled(const std::string& code) const {
    const std::string name = concat("kernels", std::hash<std::string>()(code));
    const fs::path source = folder_.path / concat(name, "-", getpid(), ".cpp"),
                   library = folder_.path / (name + ".so");
    if (fs::exists(library)) return library;
    std::ofstream(source) << code;
    // Kernels with register tiles run longer than an optimizing compilation takes. Under later
    // standards <cmath> takes three times as long to parse.
    const bool has_tiles = code.find("MultiplyRows") != std::string::npos ||
                           code.find("mma_tile") != std::string::npos;
    compile_library(concat(has_tiles ? "-O1" : "-O0", " -std=c++14 -w -mf16c ", source.string()),
                    library);
    return library;
  }

  std::mutex mutex_;
  Folder folder_;
  std::map<std::string, std::string> paths_;  // kept for the process's lifetime
};

Libraries& libraries() {
  static Libraries all;
  return all;
}

class EmulatedModel : public DeviceExecutable {
 public:
  explicit EmulatedModel(const Program& program) : program_(program) {
    const std::string library =
        compiled_kernels({reinterpret_cast<const char*>(program.code.data()), program.code.size()});
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);  // kept loaded
    if (handle == nullptr) throw Error(dlerror());
    for (const Program::Kernel& kernel : program.kernels) {
      if (!kernel.library.empty()) {
        kernels_.push_back(nullptr);
        continue;
      }
      kernels_.push_back(
          reinterpret_cast<Kernel>(dlsym(handle, ("emulate_" + kernel.symbol).c_str())));
      if (kernels_.back() == nullptr)
        throw Error("an emulated kernel is missing").got(kernel.symbol);
    }
  }
  std::unique_ptr<DeviceContext> make_context() const override {
    return std::make_unique<EmulatedContext>(program_, kernels_);
  }

 private:
  const Program& program_;
  std::vector<Kernel> kernels_;
};

}  // namespace

void compile_library(const std::string& what, const std::string& library) {
  const std::string made = concat(library, ".", getpid());
  // Takes the first compiler that is installed: clang compiles, and above all links, faster.
  static const std::string compiler =
      std::system("{ clang++-19 --version && mold --version; } > /dev/null 2>&1") == 0
          ? "clang++-19 -fuse-ld=mold"
          : "c++";
  if (std::system(concat(compiler, " -std=c++17 -shared -fPIC ", what, " -o ", made).c_str()) != 0)
    throw Error("what stands in for a device does not compile").got(what);
  std::filesystem::rename(made, library);  // atomic: concurrent readers see a complete file
}

std::string new_library_path(const std::string& name) { return libraries().new_path(name); }
std::string compiled_kernels(const std::string& code) { return libraries().path_of(code); }

std::shared_ptr<const DeviceExecutable> emulate(const Program& program) {
  return std::make_shared<EmulatedModel>(program);
}

// Kernels that may use TF32 are separate; emulated, they compute in f32.
codegen::cuda::CudaTarget emulated_target() {
  return {.architecture = "sm_90a",
          .allows_tf32 = true,
          .has_int8_multiply_add = true,
          .uses_libraries = false,
          .is_emulated = true};
}

codegen::Compiled compile_described(const Graph& graph) {
  codegen::CompileOptions options = driver::cpu_options();
  options.describes_step = true;
  options.target = codegen::cuda::cuda_target(emulated_target());
  return codegen::compile(graph, options);
}
Program compile_emulated(const Graph& graph) { return compile_described(graph).program; }

bool has_compiler() {
  static const bool has = std::system("c++ --version > /dev/null 2>&1") == 0;
  return has;
}

std::vector<Tensor> run_emulated(const Graph& graph, const std::vector<Tensor>& inputs) {
  return run_emulated(compile_emulated(graph), inputs);
}

std::vector<Tensor> run_emulated(Program given, const std::vector<Tensor>& inputs) {
  const auto model = std::make_shared<const Executable>(std::move(given), emulate);
  Executor context(model, 1);
  std::vector<Shape> shapes;
  std::vector<const void*> sources;
  for (const Tensor& input : inputs) {
    shapes.push_back(input.shape());
    sources.push_back(input.bytes().data());
  }
  context.bind(shapes);
  std::vector<Tensor> outputs;
  std::vector<void*> targets;
  const Program& program = model->program();
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    outputs.emplace_back(element_type_of(program.buffers[program.outputs[k]]),
                         context.output_shape(k));
  }
  for (Tensor& output : outputs) targets.push_back(output.mutable_bytes().data());
  context.run(sources, targets);
  return outputs;
}

passes::StatefulGraph convolutions_step(int layers, int extent) {
  std::string text;
  for (int k = 1; k <= layers; ++k)
    text += concat("  a", k, " = conv(y", k - 1, ", w", k % 2, ") {pads = [1, 1, 1, 1]}\n  y", k,
                   " = tanh(a", k, ")\n");
  passes::TrainOptions options;
  options.optimizer.kind = "momentum";
  passes::StatefulGraph step =
      passes::train(parse_graph(concat("graph net (y0: f32[2, 4, ", extent, ", ", extent, R"(]) {
  w0 = constant f32[4, 4, 3, 3] normal(seed = 1, mean = 0.0, deviation = 0.3)
  w1 = constant f32[4, 4, 3, 3] normal(seed = 2, mean = 0.0, deviation = 0.3)
)",
                                       text, "  y = reduce_mean(y", layers,
                                       ") {axes = [2, 3], keep_axes = false}\n  return y\n}"),
                                all_ops()),
                    options);
  step.graph = driver::run_pipeline(step.graph, driver::pipeline_for(driver::parse_target("cuda")));
  return step;
}

std::vector<Tensor> inputs_of(const passes::StatefulGraph& step) {
  std::vector<Tensor> inputs;
  for (const Datum& input : models::random_inputs(step.graph, 3)) inputs.push_back(input.tensor());
  for (const passes::State& state : step.states) inputs[state.input] = state.initial.materialise();
  return inputs;
}

void expect_as_reference(const Graph& graph, const std::vector<Datum>& inputs,
                         const std::string& what) {
  expect_as_reference(compile_emulated(graph), graph, inputs, what);
}

void expect_as_reference(Program program, const Graph& graph, const std::vector<Datum>& inputs,
                         const std::string& what) {
  const std::vector<Datum> expected = reference::evaluate(graph, inputs);
  std::vector<Tensor> tensors;
  for (const Datum& input : inputs) tensors.push_back(input.tensor());
  std::vector<Datum> actual;
  for (Tensor& output : run_emulated(std::move(program), tensors))
    actual.emplace_back(std::move(output));
  testing::Leeway leeway = testing::leeway_between(graph, graph);
  leeway.is_exact = false;
  leeway.epsilon = std::max(leeway.epsilon, 1.2e-7);
  const auto difference = testing::difference_between(actual, expected, leeway, [&] {
    return testing::disturbed_outputs(graph, inputs, leeway.epsilon, {});
  });
  EXPECT_FALSE(difference) << what << ": output " << (difference ? difference->output : 0) << ": "
                           << (difference ? difference->what : "");
}

}  // namespace tenon::testing
