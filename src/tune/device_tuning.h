#pragma once

#include "program/program.h"
#include "runtime/device.h"
#include "target/gpu_facts.h"
#include "tune/tuner.h"

namespace tenon::tune {

/// Returns the key of library timings: the device and the library versions. Throws Error (Device)
/// without a device.
TuningPlace device_place();

/// Returns the names of this machine's device and of its libraries.
DeviceNames device_names();
/// Returns the key of library timings on the device of a kernel key.
TuningPlace library_tuning_place(TuningPlace kernels);

/// Returns the canonical text of a step's library call with its extents; nullopt for steps without
/// a call or with extents that are only known at run time.
std::optional<std::string> library_work(const Program& program, std::size_t step);

/// Sets the fastest known algorithms in the steps of a program. Returns by step whether a library
/// call remains to be timed, and counts distinct work.
std::vector<bool> use_tuned_candidates(const TuningCache& cache, const TuningPlace& place,
                                       Program& program, TuneReport& report);

/// Stores timings of library algorithms.
void remember_candidates(TuningCache& cache, const TuningPlace& place, const Program& program,
                         const std::vector<TimedCandidates>& timed);

/// Sets the fastest known library algorithms in a program for this machine's device; with `times`,
/// times unknown ones first, on the program's shapes.
TuneReport tune_on_device(TuningCache& cache, Program& program, bool times);

}  // namespace tenon::tune
