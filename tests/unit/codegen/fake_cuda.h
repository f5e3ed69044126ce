#pragma once

#include "program/program.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::testing {

/// NVIDIA's driver as tests build it (tests/fixtures/fake_cuda.cpp), from then on that of this
/// process: to be made before anything else asks for a device, in a process of its own.
class FakeCuda {
 public:
  FakeCuda();

  /// Copies run at the first moment that events allow, not at the last.
  void run_copies_early(bool is_early);
  enum class Lost { None, WaitsOfSteps, WaitsOfCopies, WaitsOfHost };
  /// From then on such waits for events are left out.
  void lose(Lost waits);
  void limit_pinned_bytes(std::size_t bytes);
  /// No single allocation on the device may take more.
  void limit_device_bytes(std::size_t bytes);
  /// The kernel of this symbol cannot be launched, or fails when it runs, and the device with it.
  enum class Failure { AtLaunch, WhenItRuns };
  void fail(const std::string& symbol, Failure when);
  std::size_t pinned_bytes() const;
  int pinned_allocations() const;

 private:
  void* library_ = nullptr;
};

/// What `compile_emulated` made, for that driver.
Program for_fake_cuda(Program emulated);

}  // namespace tenon::testing
