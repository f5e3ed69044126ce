#pragma once

#include "driver/tuning/tuner.h"
#include "program/program.h"
#include "runtime/device.h"

namespace tenon {

/// What timings of a device's libraries hold for: the device and their versions. Throws Error
/// (Device) where there is no device.
TuningPlace device_place();

/// What timings of kernels, ours and libraries', hold for on the device: also the code generator.
TuningPlace device_kernels_place();
/// What timings of libraries alone hold for on the device of such a place.
TuningPlace ways_place(TuningPlace kernels);

/// What a step asks of a library, extents and all, as the cache knows it; nothing for steps that
/// call none, or whose extents only the run knows.
std::optional<std::string> library_work(const Program& program, std::size_t step);

/// Writes into the steps of a program the ways that were fastest when they were timed. Gives by
/// step whether a library's way is still to be timed, and counts all of different work.
std::vector<bool> use_known_ways(const TuningCache& cache, const TuningPlace& place,
                                 Program& program, TuneReport& report);

/// Keeps what was timed.
void remember_ways(TuningCache& cache, const TuningPlace& place, const Program& program,
                   const std::vector<TimedWays>& timed);

/// Has a program for the device here take the ways that are known to be fastest; with `times`,
/// those that are not known are timed first, on the shapes that the program has.
TuneReport tune_on_device(TuningCache& cache, Program& program, bool times);

}  // namespace tenon
