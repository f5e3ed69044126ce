#include "base/error.h"
#include "embed/json_text.h"
#include "embed/loaded_program.h"
#include "embed/tensor.h"

#include <algorithm>
#include <cstdlib>

namespace tenon::embed {
namespace {

// Memory for an output that the caller passed without memory.
class OwnedOutput {
 public:
  // Keeps a block that it replaces until `release_old`.
  void* at_least(std::uint64_t bytes) {
    if (data_ == nullptr || bytes > bytes_) {
      const std::uint64_t size = std::max<std::uint64_t>(64, (bytes + 63) / 64 * 64);
      std::unique_ptr<std::byte, Free> block(static_cast<std::byte*>(std::aligned_alloc(64, size)));
      if (block == nullptr) throw std::bad_alloc();
      if (old_ == nullptr) {
        old_ = std::move(data_);
        old_bytes_ = bytes_;
      }
      data_ = std::move(block);
      bytes_ = size;
    }
    return data_.get();
  }
  std::span<const std::byte> old() const { return {old_.get(), old_ ? old_bytes_ : 0}; }
  void release_old() { old_.reset(); }

 private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  std::unique_ptr<std::byte, Free> data_, old_;
  std::uint64_t bytes_ = 0, old_bytes_ = 0;
};

class KernelContext : public RunContext {
 public:
  KernelContext(std::shared_ptr<const LoadedProgram> program, int threads, Replacements weights)
      : RunContext(std::move(program), threads), threads_(threads), weights_(std::move(weights)) {
    for (const auto& [buffer, data] : weights_) executor_.replace_constant(buffer, data.get());
    for (const ProgramPort& port : loaded().ports(TENON_INPUT))
      inputs_.push_back({concat("input '", port.name, "'"), port.dtype, port.position});
    for (const ProgramPort& port : loaded().ports(TENON_OUTPUT))
      outputs_.push_back({concat("output '", port.name, "'"), port.dtype, port.position});
    shapes_.resize(loaded().program().inputs.size());
    sources_.resize(loaded().program().inputs.size());
    targets_.resize(loaded().program().outputs.size());
    owned_.resize(outputs_.size());
    memory_.reserve(inputs_.size() + 2 * outputs_.size());
  }

  void bind(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) override {
    const ExecutorUse use(is_in_use_);
    executor_.require_idle();
    require_counts(inputs.size(), outputs.size());
    bind_shapes(inputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) describe_output(k, outputs[k]);
  }

  void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
           std::string* watched) override {
    const ExecutorUse use(is_in_use_);
    place(inputs, outputs);
    Observers observers;
    if (watched != nullptr) {
      events_.clear();
      observers.events = &events_;
    }
    executor_.run(sources_, targets_, observers);
    if (watched != nullptr) *watched = watched_json();
    describe_owned(outputs);
  }

  void start(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) override {
    const ExecutorUse use(is_in_use_);
    place(inputs, outputs);
    executor_.start(sources_, targets_);
    describe_owned(outputs);
  }

  void finish() override {
    const ExecutorUse use(is_in_use_);
    executor_.finish();
  }

  std::unique_ptr<RunContext> fork() override {
    auto made = std::make_unique<KernelContext>(program_, threads_, weights_);
    made->share_states(*this);
    return made;
  }

 private:
  struct Named {
    std::string name;  // e.g. "input 'x'"
    tenon_dtype dtype;
    std::size_t position;
  };

  void place(std::span<const tenon_tensor> inputs, std::span<const tenon_tensor> outputs) {
    executor_.require_idle();  // a run in progress may still write to the context's own outputs
    require_counts(inputs.size(), outputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      require_type(inputs[k], inputs_[k]);
      require_usable(inputs[k], inputs_[k].name);
      sources_[inputs_[k].position] = inputs[k].data;
    }
    bind_shapes(inputs);
    memory_.clear();
    for (std::size_t k = 0; k < inputs.size(); ++k)
      add_memory(inputs[k].data, byte_count(inputs[k], inputs_[k].name), inputs_[k].name, false);
    for (std::size_t k = 0; k < outputs.size(); ++k) place_output(k, outputs[k]);
    require_disjoint(memory_);
    for (OwnedOutput& owned : owned_) owned.release_old();
  }
  void add_memory(const void* data, std::uint64_t bytes, const std::string& name, bool is_output) {
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    memory_.push_back({begin, begin + bytes, &name, is_output});
  }

  static void require_type(const tenon_tensor& tensor, const Named& port) {
    if (tensor.dtype == port.dtype) return;
    throw Error(concat(port.name, " has the wrong element type"), ErrorKind::Usage)
        .expected(name_of(port.dtype))
        .got(tensor.dtype == TENON_NO_DTYPE ? "none" : name_of(tensor.dtype));
  }

  void bind_shapes(std::span<const tenon_tensor> inputs) {
    bool is_new = !is_bound_;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::span<const std::int64_t> shape = shape_of(inputs[k], inputs_[k].name);
      std::vector<std::int64_t>& bound = shapes_[inputs_[k].position];
      if (!is_new && std::ranges::equal(shape, bound)) continue;
      is_new = true;
      is_bound_ = false;
      bound.assign(shape.begin(), shape.end());
    }
    if (!is_new && loaded().program().states.empty()) return;
    executor_.bind(shapes_);
    is_bound_ = true;
  }

  void describe_output(std::size_t k, tenon_tensor& output) const {
    const std::vector<std::int64_t>& shape = executor_.output_shape(outputs_[k].position);
    output.shape = shape.data();
    output.strides = nullptr;
    output.rank = static_cast<std::int32_t>(shape.size());
    output.dtype = outputs_[k].dtype;
  }

  void place_output(std::size_t k, const tenon_tensor& output) {
    targets_[outputs_[k].position] = output.data;
    if (output.data == nullptr) {
      tenon_tensor made{};
      describe_output(k, made);
      const std::uint64_t bytes = byte_count(made, outputs_[k].name);
      targets_[outputs_[k].position] = owned_[k].at_least(bytes);
      add_memory(targets_[outputs_[k].position], bytes, outputs_[k].name, true);
    } else {
      require_type(output, outputs_[k]);
      require_usable(output, outputs_[k].name);
      const std::vector<std::int64_t>& expected = executor_.output_shape(outputs_[k].position);
      if (!std::ranges::equal(shape_of(output, outputs_[k].name), expected)) {
        throw Error(concat(outputs_[k].name, " has the wrong shape"), ErrorKind::Usage)
            .expected(type_text(name_of(outputs_[k].dtype), expected))
            .got(type_text(output));
      }
      add_memory(output.data, byte_count(output, outputs_[k].name), outputs_[k].name, true);
    }
    const std::span<const std::byte> old = owned_[k].old();
    add_memory(old.data(), old.size(), outputs_[k].name, true);
  }
  // The caller's descriptions change only after success.
  void describe_owned(std::span<tenon_tensor> outputs) const {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].data != nullptr) continue;
      describe_output(k, outputs[k]);
      outputs[k].data = targets_[outputs_[k].position];
    }
  }

  std::string watched_json() const {
    const double second = seconds_per_tick();
    std::vector<std::string> steps;
    const Program& program = executor_.program();
    for (const StepEvent& step : events_.steps) {
      const std::uint32_t k = step.step;
      steps.push_back(JsonObject()
                          .add("step", k)
                          .add("name", program.steps[k].name)
                          .add("value", program.steps[k].value)
                          .add("kernel", program.kernels[program.steps[k].kernel].name)
                          .add("candidate", program.steps[k].candidate)
                          .add("seconds", static_cast<double>(step.end - step.start) * second)
                          .add("flops", program.steps[k].flops)
                          .add("bytes", program.steps[k].bytes)
                          .text());
    }
    return JsonObject().add_json("steps", json_list(steps)).text();
  }

  int threads_;
  Replacements weights_;
  std::vector<Named> inputs_, outputs_;
  std::vector<std::vector<std::int64_t>> shapes_;  // bound shapes
  bool is_bound_ = false;
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  std::vector<OwnedOutput> owned_;
  std::vector<PortMemory> memory_;
  RunEvents events_;
};

class KernelProgram : public LoadedProgram {
 public:
  using LoadedProgram::LoadedProgram;
  std::unique_ptr<RunContext> make_context(int threads) const override {
    return std::make_unique<KernelContext>(shared_from_this(), threads, replacements());
  }
};

}  // namespace

std::shared_ptr<LoadedProgram> load(Program program) {
  if (!program.is_kernel_only()) return load_with_operators(std::move(program));
  return std::make_shared<KernelProgram>(std::make_shared<const Executable>(std::move(program)));
}

}  // namespace tenon::embed
