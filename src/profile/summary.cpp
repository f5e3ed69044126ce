#include "profile/summary.h"

#include "base/error.h"
#include "base/text.h"

#include <algorithm>
#include <map>

namespace tenon::profile {
namespace {

bool takes_arena(const Profile::Buffer& buffer) {
  return buffer.place == Profile::BufferKind::Arena && !buffer.inside;
}

void add(const Profile& profile, const Profile::Step& step, ProfileGroup& group) {
  ++group.steps;
  group.seconds += typical_seconds(step);
  group.last_seconds += step.last_seconds();
  group.flops += step.flops;
  group.bytes += step.bytes;
  group.computation += step.computation.value_or(0);
  group.memory += step.memory.value_or(0);
  group.least_seconds += least_seconds(profile, step);
}

std::string key_of(const Profile& profile, std::size_t k, GroupBy by) {
  const Profile::Step& step = profile.steps[k];
  switch (by) {
    case GroupBy::Step:
      return concat(k);
    case GroupBy::Op:
      return step.op;
    case GroupBy::OpAndShapes:
      return concat(step.op, "  ", shapes_text(profile, step));
    case GroupBy::Kernel:
      return concat(step.op, "  ", step.candidate);
  }
  return "";
}

}  // namespace

double typical_seconds(const Profile::Step& step) {
  return step.seconds.median > 0 ? step.seconds.median : step.last_seconds();
}

double least_seconds(const Profile& profile, const Profile::Step& step) {
  const Profile::Ceilings& most = profile.ceilings;
  const double compute = most.flops_per_s > 0 ? step.flops / most.flops_per_s : 0;
  const bool is_in_cache =
      most.cache_bytes_per_s > 0 && step.bytes <= static_cast<double>(most.cache_bytes);
  const double bandwidth = is_in_cache ? most.cache_bytes_per_s : most.bytes_per_s;
  return std::max(compute, bandwidth > 0 ? step.bytes / bandwidth : 0);
}

std::string type_text(const Profile::Buffer& buffer) {
  std::vector<std::string> extents;
  for (const std::int64_t extent : buffer.shape) extents.push_back(std::to_string(extent));
  return concat(buffer.dtype, "[", join(extents, ", "), "]");
}

std::string shapes_text(const Profile& profile, const Profile::Step& step) {
  std::vector<std::string> reads, writes;
  for (const std::uint32_t id : step.reads) reads.push_back(type_text(profile.buffers[id]));
  for (const std::uint32_t id : step.writes) writes.push_back(type_text(profile.buffers[id]));
  return concat(join(reads, " "), " -> ", join(writes, " "));
}

std::vector<ProfileGroup> grouped(const Profile& profile, GroupBy by) {
  std::vector<ProfileGroup> groups;
  std::map<std::string, std::size_t> known;
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    const auto [found, is_new] = known.try_emplace(key_of(profile, k, by), groups.size());
    if (is_new) groups.push_back({found->first});
    add(profile, profile.steps[k], groups[found->second]);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const ProfileGroup& a, const ProfileGroup& b) {
    return a.seconds > b.seconds;
  });
  return groups;
}

ProfileGroup total_of(const Profile& profile) {
  ProfileGroup total{"all"};
  for (const Profile::Step& step : profile.steps) add(profile, step, total);
  return total;
}

namespace {

// Bytes that results share with operands that end at the producing step (in-place updates);
// otherwise they would count twice.
std::vector<std::uint64_t> bytes_in_place(const Profile& profile) {
  std::vector<std::vector<const Profile::Buffer*>> ending(profile.steps.size());
  for (const Profile::Buffer& buffer : profile.buffers) {
    if (takes_arena(buffer) && buffer.last_step < profile.steps.size())
      ending[buffer.last_step].push_back(&buffer);
  }
  std::vector<std::uint64_t> shared(profile.steps.size(), 0);
  for (const Profile::Buffer& made : profile.buffers) {
    if (!takes_arena(made) || made.first_step >= profile.steps.size()) continue;
    for (const Profile::Buffer* old : ending[made.first_step]) {
      if (old->first_step >= made.first_step || old->arena != made.arena) continue;
      const std::uint64_t begin = std::max(old->offset, made.offset),
                          end = std::min(old->offset + old->bytes, made.offset + made.bytes);
      if (begin < end) shared[made.first_step] += end - begin;
    }
  }
  return shared;
}

}  // namespace

LiveCurve live_curve(const Profile& profile) {
  const std::vector<std::uint64_t> shared = bytes_in_place(profile);
  std::vector<std::int64_t> change(profile.steps.size() + 1, 0);
  for (const Profile::Buffer& buffer : profile.buffers) {
    if (!takes_arena(buffer) || buffer.last_step >= profile.steps.size() ||
        buffer.first_step > buffer.last_step)
      continue;
    change[buffer.first_step] += static_cast<std::int64_t>(buffer.bytes);
    change[buffer.last_step + 1] -= static_cast<std::int64_t>(buffer.bytes);
  }
  LiveCurve curve;
  std::int64_t alive = 0;
  for (std::size_t k = 0; k < profile.steps.size(); ++k) {
    alive += change[k];
    const auto bytes = static_cast<std::uint64_t>(alive);
    curve.bytes.push_back(bytes - std::min(bytes, shared[k]));
    if (curve.bytes[k] > curve.bytes[curve.peak_step]) curve.peak_step = k;
  }
  return curve;
}

std::vector<std::uint32_t> alive_at(const Profile& profile, std::size_t step) {
  std::vector<std::uint32_t> alive;
  for (std::uint32_t k = 0; k < profile.buffers.size(); ++k) {
    const Profile::Buffer& buffer = profile.buffers[k];
    if (takes_arena(buffer) && buffer.first_step <= step && step <= buffer.last_step &&
        buffer.bytes > 0)
      alive.push_back(k);
  }
  std::stable_sort(alive.begin(), alive.end(), [&](std::uint32_t a, std::uint32_t b) {
    return profile.buffers[a].bytes > profile.buffers[b].bytes;
  });
  return alive;
}

}  // namespace tenon::profile
