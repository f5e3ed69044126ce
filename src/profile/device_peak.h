#pragma once

#include "profile/machine_peak.h"
#include "program/program.h"

namespace tenon::profile {

/// Measured peak of this machine's GPU: large matrix products, and copies.
struct DevicePeak {
  double f16_flops_per_s = 0, bf16_flops_per_s = 0, tf32_flops_per_s = 0, f32_flops_per_s = 0;
  /// read plus written
  double bytes_per_s = 0;
};
/// Takes a few seconds. Throws Error (Device) without a GPU or with a library missing.
DevicePeak measure_device_peak();

/// Returns the roofline peaks for a GPU program: of matrix products in the type of most of its
/// arithmetic. Takes a second.
MachinePeak measure_device_peak_for(const Program& program);

/// Returns the bandwidth between this machine's GPU and pinned host memory in the slower direction,
/// in bytes per second: cached for this kind of GPU, or measured now and cached. `measures_again`
/// measures in any case. Throws Error (Device) without a GPU.
double cached_link_bytes_per_s(bool measures_again = false);

/// Returns the roofline lower bound of a step's time in seconds: of arithmetic or memory traffic.
double least_seconds(const MachinePeak& peak, double flops, double bytes);

}  // namespace tenon::profile
