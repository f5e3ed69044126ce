#pragma once

#include "host/executable.h"
#include "ops/definition/evaluation.h"
#include "runtime/kernel_runner.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace tenon::inline host {

/// Host steps of one caller; used by one thread at a time.
class HostContext : public HostSteps {
 public:
  /// Both must outlive it.
  HostContext(const HostExecutable& model, KernelRunner& runner);
  ~HostContext() override;

  std::vector<PortValue> run(std::span<const PortValue> inputs,
                             const Observers& observers) override;
  void set_body_callback(std::function<void()> call) override;
  std::uint64_t pool_bytes() const override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Converts between values of operators and of runs. A value keeps the memory of its datum alive; a
/// tensor in the caller's memory becomes a datum of the buffer's element type.
PortValue port_value(Datum datum);
Datum datum_of(const PortValue& value, const Program::Buffer& buffer);
/// Requires a value of an operator.
const Datum& operator_datum(const PortValue& value);

}  // namespace tenon::inline host
