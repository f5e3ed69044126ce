#include "api/handles.h"
#include "base/error.h"
#include "host/context.h"

#include <nlohmann/json.hpp>

namespace tenon::api {
namespace {

// Executes programs with host operators between kernels.
class OperatorContext : public ValueContext {
 public:
  OperatorContext(std::shared_ptr<const embed::LoadedProgram> program, int threads)
      : ValueContext(std::move(program), threads), threads_(threads) {}

  void bind(std::span<const tenon_tensor>, std::span<tenon_tensor>) override {
    throw Error("what this program gives depends on the data, not on shapes alone",
                ErrorKind::Unsupported)
        .hint("run it with outputs whose data is null: they get memory then");
  }

  void run(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
           std::string* watched) override {
    const ExecutorUse use(is_in_use_);
    require_idle();
    run_tensors(inputs, outputs, watched);
  }

  std::vector<Datum> run(const std::vector<Datum>& inputs) override {
    const ExecutorUse use(is_in_use_);
    require_idle();
    require_counts(inputs.size(), loaded().ports(TENON_OUTPUT).size());
    for (std::size_t k = 0; k < inputs.size(); ++k) require_type(inputs[k], input_buffer(k));
    return results_of(inputs, {});
  }

  // Host operators are synchronous, so the run completes in `start`.
  void start(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs) override {
    const ExecutorUse use(is_in_use_);
    require_idle();
    run_tensors(inputs, outputs, nullptr);
    is_started_ = true;
  }

  void finish() override {
    const ExecutorUse use(is_in_use_);
    if (!is_started_) throw Error("no run of the context was started", ErrorKind::Usage);
    is_started_ = false;
  }

  std::unique_ptr<embed::RunContext> fork() override {
    auto made = std::make_unique<OperatorContext>(program_, threads_);
    made->share_states(*this);
    return made;
  }

 private:
  void require_idle() const {
    if (!is_started_) return;
    throw Error("a run of the context is in progress", ErrorKind::Usage)
        .hint("finish it first, or take another context");
  }

  void run_tensors(std::span<const tenon_tensor> inputs, std::span<tenon_tensor> outputs,
                   std::string* watched) {
    require_counts(inputs.size(), outputs.size());
    std::vector<Datum> given;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const Program::Buffer& port = input_buffer(k);
      given.emplace_back(borrowed_tensor(inputs[k], concat("input '", port.name, "'")));
      require_type(given.back(), port);
    }
    outputs_.begin(inputs, outputs);
    Observers observers;
    if (watched != nullptr) {
      events_.clear();
      observers.events = &events_;
    }
    std::vector<Datum> made = results_of(given, observers);
    if (watched != nullptr) *watched = watched_json();
    const Program& program = loaded().program();
    outputs_.end(std::move(made), inputs, outputs,
                 {program.constants.get(), program.constant_bytes}, [&](std::size_t k) {
                   return concat("output '", loaded().ports(TENON_OUTPUT)[k].name, "'");
                 });
  }

  const Program::Buffer& input_buffer(std::size_t k) const {
    const Program& program = loaded().program();
    return program.buffers[program.inputs[loaded().ports(TENON_INPUT)[k].position]];
  }

  std::vector<Datum> results_of(const std::vector<Datum>& inputs, const Observers& observers) {
    const Program& program = loaded().program();
    std::vector<PortValue> given(program.inputs.size()), made(program.outputs.size());
    for (std::size_t k = 0; k < inputs.size(); ++k)
      given[loaded().ports(TENON_INPUT)[k].position] = port_value(inputs[k]);
    executor_.run(given, made, observers);
    std::vector<Datum> results;
    for (const embed::ProgramPort& port : loaded().ports(TENON_OUTPUT))
      results.push_back(operator_datum(made[port.position]));
    return results;
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
      const Program::Step& step = loaded().program().steps[event.step];
      const bool is_kernel = step.kind == Program::StepKind::Kernel;
      steps.push_back(
          {{"step", event.step},
           {"name", step.name},
           {"value", step.value},
           {"kernel", is_kernel ? loaded().program().kernels[step.kernel].name : "operators"},
           {"seconds",
            static_cast<double>(event.end - event.start - event.inner) * seconds_per_tick()}});
    }
    return nlohmann::ordered_json{{"steps", std::move(steps)}}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  int threads_;
  RunEvents events_;
  KeptOutputs outputs_;
  bool is_started_ = false;
};

class OperatorProgram : public embed::LoadedProgram {
 public:
  using LoadedProgram::LoadedProgram;
  std::unique_ptr<embed::RunContext> make_context(int threads) const override {
    return std::make_unique<OperatorContext>(shared_from_this(), threads);
  }
};

}  // namespace
}  // namespace tenon::api

std::shared_ptr<tenon::embed::LoadedProgram> tenon::embed::load_with_operators(Program program) {
  return std::make_shared<api::OperatorProgram>(load_executable(std::move(program)));
}
