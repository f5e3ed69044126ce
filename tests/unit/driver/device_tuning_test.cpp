// Algorithms of library calls, as timed on a device.
#include "tune/device_tuning.h"

#include <gtest/gtest.h>

#include <limits>

namespace tenon::device_tuning_test {
namespace {

// A program of three library calls, of which two are equal, one with symbolic extents, and a
// kernel.
Program some_program() {
  Program program;
  for (const char* library : {"conv a", "matmul b", ""}) {
    Program::Kernel kernel;
    kernel.library = library;
    program.kernels.push_back(kernel);
  }
  const auto add = [&](std::uint32_t kernel, const char* candidate, std::vector<Extent> extents) {
    Program::Step step;
    step.kernel = kernel;
    step.candidate = candidate;
    step.name = "node";
    step.extents = std::move(extents);
    program.steps.push_back(step);
  };
  add(0, "cudnn", {8, 3});
  add(1, "cublas", {5});
  add(0, "cudnn", {8, 3});
  add(1, "cublas", {Extent::symbol(0)});
  add(2, "loops", {});
  return program;
}

const tune::TuningPlace kPlace{"a device", "libraries 1.2", 1};

TEST(DeviceTuning, KeyIsTheCallAndItsExtents) {
  const Program program = some_program();
  EXPECT_EQ(tune::library_work(program, 0), "conv a 8 3");
  EXPECT_EQ(tune::library_work(program, 3), std::nullopt);
  EXPECT_EQ(tune::library_work(program, 4), std::nullopt);
}

TEST(DeviceTuning, ReusesTheFastestAlgorithm) {
  tune::TuningCache cache;
  Program program = some_program();
  tune::TuneReport report;
  const std::vector<bool> open = tune::use_tuned_candidates(cache, kPlace, program, report);
  EXPECT_EQ(open, (std::vector<bool>{true, true, false, false, false}));
  EXPECT_EQ(report.kernels, 2U);
  EXPECT_EQ(report.known, 0U);
  const double never = std::numeric_limits<double>::infinity();
  tune::remember_candidates(cache, kPlace, program,
                            {{0, {3e-6, never, 1e-6}, 3}, {1, {1e-6, 2e-6}, 3}});
  tune::TuneReport after;
  EXPECT_EQ(tune::use_tuned_candidates(cache, kPlace, program, after), std::vector<bool>(5, false));
  EXPECT_EQ(after.known, 2U);
  std::vector<std::string> candidates;
  for (const Program::Step& step : program.steps) candidates.push_back(step.candidate);
  EXPECT_EQ(candidates,
            (std::vector<std::string>{"cudnn#2", "cublas", "cudnn#2", "cublas", "loops"}));
  // Timings do not apply to another device, and an algorithm that was not run is not stored.
  Program other = some_program();
  tune::TuneReport elsewhere;
  tune::use_tuned_candidates(cache, {"another", "libraries 1.2", 1}, other, elsewhere);
  EXPECT_EQ(elsewhere.known, 0U);
  EXPECT_EQ(other.steps[0].candidate, "cudnn");
  EXPECT_EQ(cache.find(kPlace, "conv a 8 3")->timings.size(), 2U);
}

TEST(DeviceTuning, IgnoresCallsThatWereNotRun) {
  tune::TuningCache cache;
  const Program program = some_program();
  tune::remember_candidates(cache, kPlace, program,
                            {{0, {std::numeric_limits<double>::infinity()}, 3}});
  EXPECT_FALSE(cache.find(kPlace, "conv a 8 3"));
}

}  // namespace
}  // namespace tenon::device_tuning_test
