#pragma once

#include "profile/profile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// Steps that have something in common, added up.
struct ProfileGroup {
  std::string key;
  std::size_t steps = 0;
  /// of medians; of the last run where there was one only
  double seconds = 0;
  /// of the last run
  double last_seconds = 0;
  double flops = 0, bytes = 0;
  /// by MegEngine's formulas
  double computation = 0, memory = 0;
  /// that the machine's ceilings allow
  double least_seconds = 0;
};

/// The seconds that a step's place in a table is decided by: the median of all runs.
double typical_seconds(const Profile::Step& step);
/// The least that a step could take: arithmetic at the peak, or bytes at the bandwidth of the level
/// that they fit in. 0 where no ceilings were measured.
double least_seconds(const Profile& profile, const Profile::Step& step);

enum class GroupBy : std::uint8_t { Step, Op, OpAndShapes, Kernel };
/// The longest first; equal ones in the order they ran.
std::vector<ProfileGroup> grouped(const Profile& profile, GroupBy by);

/// All of it as one group: what the shares are of.
ProfileGroup total_of(const Profile& profile);
/// "f32[1, 64, 56, 56] f32[64] -> f32[1, 64, 56, 56]"
std::string shapes_text(const Profile& profile, const Profile::Step& step);
std::string type_text(const Profile::Buffer& buffer);

/// Bytes of the arena alive at each step, and the step with most of them. A result that takes an
/// operand's place is counted once with it.
struct LiveCurve {
  std::vector<std::uint64_t> bytes;
  std::size_t peak_step = 0;
  std::uint64_t peak_bytes() const { return bytes.empty() ? 0 : bytes[peak_step]; }
};
LiveCurve live_curve(const Profile& profile);
/// The buffers alive at a step, the largest first.
std::vector<std::uint32_t> alive_at(const Profile& profile, std::size_t step);

}  // namespace tenon
