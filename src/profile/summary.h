#pragma once

#include "profile/profile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::profile {

/// Sum over steps with a common key.
struct ProfileGroup {
  std::string key;
  std::size_t steps = 0;
  /// Sum of medians; of the last run if only one was measured.
  double seconds = 0;
  /// Seconds in the last run.
  double last_seconds = 0;
  double flops = 0, bytes = 0;
  /// Work by MegEngine's formulas.
  double computation = 0, memory = 0;
  /// Lower bound by the roofline.
  double least_seconds = 0;
};

/// Seconds that rank a step in tables: the median over all runs.
double typical_seconds(const Profile::Step& step);
/// Roofline bound of a step: arithmetic at the peak, or bytes at the bandwidth of the memory level
/// that they fit in. 0 without measured ceilings.
double least_seconds(const Profile& profile, const Profile::Step& step);

enum class GroupBy : std::uint8_t { Step, Op, OpAndShapes, Kernel };
/// Groups by decreasing time; ties in execution order.
std::vector<ProfileGroup> grouped(const Profile& profile, GroupBy by);

/// Sum over all steps, the base of shares.
ProfileGroup total_of(const Profile& profile);
/// E.g. "f32[1, 64, 56, 56] f32[64] -> f32[1, 64, 56, 56]".
std::string shapes_text(const Profile& profile, const Profile::Step& step);
std::string type_text(const Profile::Buffer& buffer);

/// Live bytes of the arena at each step, and the peak step. A result that overwrites an operand
/// counts once.
struct LiveCurve {
  std::vector<std::uint64_t> bytes;
  std::size_t peak_step = 0;
  std::uint64_t peak_bytes() const { return bytes.empty() ? 0 : bytes[peak_step]; }
};
LiveCurve live_curve(const Profile& profile);
/// Buffers alive at a step, by decreasing size.
std::vector<std::uint32_t> alive_at(const Profile& profile, std::size_t step);

}  // namespace tenon::profile
