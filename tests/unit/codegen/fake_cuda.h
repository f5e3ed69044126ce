#pragma once

#include "program/program.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::testing {

/// Replaces NVIDIA's driver by tests/fixtures/fake_cuda.cpp for the rest of the process. Construct
/// it before the first use of a device, in a separate process.
class FakeCuda {
 public:
  FakeCuda();

  /// Copies run as soon as events allow, instead of as late as possible.
  void run_copies_early(bool is_early);
  enum class Lost { None, WaitsOfSteps, WaitsOfCopies, WaitsOfHost };
  /// From then on ignores these waits for events.
  void lose(Lost waits);
  void limit_pinned_bytes(std::size_t bytes);
  /// Limits the size of a single allocation on the device.
  void limit_device_bytes(std::size_t bytes);
  /// The kernel of this symbol fails at its launch, or while it runs, which fails the device as
  /// well.
  enum class Failure { AtLaunch, WhenItRuns };
  void fail(const std::string& symbol, Failure when);
  std::size_t pinned_bytes() const;
  int pinned_allocations() const;

 private:
  void* library_ = nullptr;
};

/// Adapts a program of `compile_emulated` to that driver.
Program for_fake_cuda(Program emulated);

}  // namespace tenon::testing
