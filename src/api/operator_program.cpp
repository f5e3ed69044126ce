#include "api/handles.h"
#include "base/error.h"
#include "host/compiled.h"

#include <nlohmann/json.hpp>

namespace tenon::api {
namespace {

// Executes programs with host operators between kernels.
class OperatorContext : public ValueContext {
 public:
  OperatorContext(std::shared_ptr<const HostExecutable> model, int threads)
      : model_(std::move(model)), context_(model_, threads) {}

  void bind(std::span<const tenon_tensor>, std::span<tenon_tensor>) override {
    throw Error("what this program gives depends on the data, not on shapes alone",
                ErrorKind::Unsupported)
        .hint("run it with outputs whose data is null: they get memory then");
  }

  void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
           std::string* watched) override {
    const ContextUse use(is_in_use_);
    require_idle();
    run_tensors(inputs, outputs, watched);
  }

  std::vector<Datum> run(const std::vector<Datum>& inputs) override {
    const ContextUse use(is_in_use_);
    require_idle();
    const Program& program = model_->program();
    require_count(inputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k)
      require_type(inputs[k], program.buffers[program.inputs[k]]);
    return context_.run(inputs);
  }

  // Host operators are synchronous, so the run completes in `start`.
  void start(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) override {
    const ContextUse use(is_in_use_);
    require_idle();
    run_tensors(inputs, outputs, nullptr);
    is_started_ = true;
  }

  void finish() override {
    const ContextUse use(is_in_use_);
    if (!is_started_) throw Error("no run of the context was started", ErrorKind::Usage);
    is_started_ = false;
  }

  std::string describe() const override {
    return nlohmann::ordered_json{{"threads", context_.thread_count()},
                                  {"arena_bytes", context_.arena_bytes()},
                                  {"scratch_bytes", context_.scratch_bytes()}}
        .dump();
  }

 private:
  void require_idle() const {
    if (!is_started_) return;
    throw Error("a run of the context is in progress", ErrorKind::Usage)
        .hint("finish it first, or take another context");
  }

  void run_tensors(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
                   std::string* watched) {
    const Program& program = model_->program();
    if (outputs.size() != program.outputs.size()) {
      throw Error("the program gives another number of outputs", ErrorKind::Usage)
          .expected(program.outputs.size())
          .got(outputs.size());
    }
    require_count(inputs.size());
    std::vector<Datum> given;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const Program::Buffer& port = program.buffers[program.inputs[k]];
      given.emplace_back(borrowed_tensor(inputs[k], concat("input '", port.name, "'")));
      require_type(given.back(), port);
    }
    outputs_.begin(inputs, outputs);
    std::vector<Datum> made;
    if (watched == nullptr) {
      made = context_.run(given);
    } else {
      events_.clear();
      made = context_.run(given, events_);
      *watched = watched_json();
    }
    outputs_.end(std::move(made), inputs, outputs,
                 {program.constants.get(), program.constant_bytes}, [&](std::size_t k) {
                   return concat("output '", program.buffers[program.outputs[k]].name, "'");
                 });
  }

  void require_count(std::size_t inputs) const {
    const std::size_t expected = model_->program().inputs.size();
    if (inputs == expected) return;
    throw Error("the program takes another number of inputs", ErrorKind::Usage)
        .expected(expected)
        .got(inputs);
  }

  static void require_type(const Datum& given, const Program::Buffer& port) {
    if (!parse_dtype(port.dtype)) return;  // operators check other kinds themselves
    if (given.is_tensor() && to_string(given.tensor().dtype()) == port.dtype) return;
    throw Error(concat("input '", port.name, "' has the wrong element type"), ErrorKind::Usage)
        .expected(port.dtype)
        .got(given.type());
  }

  std::string watched_json() const {
    nlohmann::ordered_json steps = nlohmann::ordered_json::array();
    for (const StepEvent& event : events_.steps) {
      const Program::Step& step = model_->program().steps[event.step];
      const bool is_kernel = step.kind == Program::StepKind::Kernel;
      steps.push_back(
          {{"step", event.step},
           {"name", step.name},
           {"value", step.value},
           {"kernel", is_kernel ? model_->program().kernels[step.kernel].name : "operators"},
           {"seconds",
            static_cast<double>(event.end - event.start - event.inner) * seconds_per_tick()}});
    }
    return nlohmann::ordered_json{{"steps", std::move(steps)}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  std::shared_ptr<const HostExecutable> model_;
  HostContext context_;
  RunEvents events_;
  KeptOutputs outputs_;
  bool is_started_ = false;
  std::atomic_flag is_in_use_;
};

class OperatorProgram : public embed::LoadedProgram {
 public:
  explicit OperatorProgram(Program program)
      : LoadedProgram(program),
        model_(std::make_shared<const HostExecutable>(std::move(program))) {}
  const Program& program() const override { return model_->program(); }
  std::unique_ptr<embed::RunContext> make_context(int threads) const override {
    return std::make_unique<OperatorContext>(model_, threads);
  }

 private:
  std::shared_ptr<const HostExecutable> model_;
};

}  // namespace
}  // namespace tenon::api

std::shared_ptr<tenon::embed::LoadedProgram> tenon::embed::load_with_operators(Program program) {
  return std::make_shared<api::OperatorProgram>(std::move(program));
}
