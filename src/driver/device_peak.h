#pragma once

#include "driver/machine_peak.h"
#include "program/program.h"

namespace tenon {

/// What the GPU of this machine gives at most, measured by programs for it: products of large
/// matrices, and copying.
struct DevicePeak {
  double f16_flops_per_s = 0, bf16_flops_per_s = 0, tf32_flops_per_s = 0, f32_flops_per_s = 0;
  /// read and written
  double bytes_per_s = 0;
};
/// Takes a few seconds. Throws Error (Device) where there is no GPU, or a library is missing.
DevicePeak measure_device_peak();

/// The ceilings of a program for a GPU: its products are of the type that most of its arithmetic
/// has. Takes a second.
MachinePeak measure_device_peak_for(const Program& program);

/// Bytes a second between the GPU of this machine and pinned memory of the host's, the slower way:
/// what was measured with this kind of GPU before; measured now and kept where nothing was. `anew`
/// measures in any case. Throws Error (Device) where there is no GPU.
double known_link_bytes_per_s(bool anew = false);

/// The least seconds that a step takes: for its arithmetic, or for moving its bytes.
double least_seconds(const MachinePeak& peak, double flops, double bytes);

}  // namespace tenon
