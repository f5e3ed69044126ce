#include "program/run_profile.h"

#include <algorithm>

namespace tenon::inline program {
namespace {

double total(const std::vector<Profile::Span>& spans) {
  double seconds = 0;
  for (const Profile::Span& span : spans) seconds += span.end - span.start;
  return seconds;
}

}  // namespace

double Profile::Step::last_seconds() const { return total(device.empty() ? host : device); }

double Profile::Step::start() const {
  const auto& spans = device.empty() ? host : device;
  double first = spans.empty() ? 0 : spans.front().start;
  for (const Span& span : spans) first = std::min(first, span.start);
  return first;
}

double Profile::Step::end() const {
  double last = 0;
  for (const Span& span : device.empty() ? host : device) last = std::max(last, span.end);
  return last;
}

Profile::Spread spread_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const auto at = [&](double share) {
    return samples[static_cast<std::size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
  };
  return {at(0.5), at(0.1), at(0.9), samples.front()};
}

std::string to_string(Profile::BufferKind place) {
  switch (place) {
    case Profile::BufferKind::Input:
      return "input";
    case Profile::BufferKind::Output:
      return "output";
    case Profile::BufferKind::Constant:
      return "constant";
    case Profile::BufferKind::Arena:
      return "arena";
  }
  return "";
}

std::string to_string(Profile::Kind kind) {
  switch (kind) {
    case Profile::Kind::Kernel:
      return "kernel";
    case Profile::Kind::Operators:
      return "operators";
    case Profile::Kind::Copy:
      return "copy";
  }
  return "";
}

std::string to_string(Profile::Making making) {
  switch (making) {
    case Profile::Making::Made:
      return "made";
    case Profile::Making::Again:
      return "again";
    case Profile::Making::Back:
      return "back";
  }
  return "";
}

}  // namespace tenon::inline program
