#include "base/text.h"
#include "documents/megengine/check_parts.h"
#include "documents/megengine/vocabulary.h"

#include <cmath>
#include <limits>
#include <map>

namespace tenon::documents::megengine {
namespace {

// CUDA returns the time between events as a 32-bit float of milliseconds.
double as_event_time(double seconds) {
  if (std::fabs(seconds * 1e3) > std::numeric_limits<float>::max())
    return std::numeric_limits<double>::infinity();
  return static_cast<double>(static_cast<float>(seconds * 1e3)) * 1e-3;
}

class TimesCheck {
 public:
  TimesCheck(const CheckContext& context, bool is_host) : context_(context), is_host_(is_host) {}

  void run() {
    const auto& list = is_host_ ? context_.profile.profiler.host : context_.profile.profiler.device;
    if (list.empty()) return;
    const auto& table = is_host_ ? context_.index.host : context_.index.device;
    std::map<std::string, std::pair<double, ItemId>> last_end;  // by thread or comp node
    for (std::size_t opr : context_.index.sequence) {
      const Operator& node = context_.operators()[opr];
      const std::string_view kind =
          is_host_ ? "host times: of every operator" : "device times: of every operator";
      context_.findings.compare(
          kind, [&] { return concat(path(), node.id); }, table[opr] ? "there" : "missing", "there");
      if (table[opr] == nullptr) continue;
      for (const auto& [place, times] : table[opr]->at) check(node, place, times, last_end);
    }
    for (const Measured& measured : list) {
      const std::size_t opr = context_.index.operators.at(measured.opr);
      context_.findings.compare(
          is_host_ ? "host times: of executed operators" : "device times: of executed operators",
          [&] { return concat(path(), measured.opr); },
          context_.index.is_executed(opr) ? "executed" : "not executed", "executed");
    }
  }

 private:
  std::string path() const { return is_host_ ? "$.profiler.host." : "$.profiler.device."; }

  void check(const Operator& node, const std::string& place, const Times& times,
             std::map<std::string, std::pair<double, ItemId>>& last_end) {
    const auto here = [&](std::string_view member) {
      return [this, &node, &place, member] {
        return concat(path(), node.id, ".", place, ".", member);
      };
    };
    const auto in_order = [&](std::string_view kind, std::string_view member,
                              const std::optional<double>& earlier,
                              const std::optional<double>& later, std::string_view what) {
      if (!earlier || !later) return;
      context_.findings.require(*earlier <= *later, kind, here(member), fifteen_digits(*later),
                                concat(fifteen_digits(*earlier), " or later, ", what));
    };
    const std::string_view order =
        is_host_ ? "host times: start, kern, end" : "device times: start, kern, end";
    in_order(order, "kern", times.start, times.kern, "its start");
    in_order(order, "end", times.kern, times.end, "its kernel's start");
    in_order(order, "end", times.start, times.end, "its start");
    auto& [end, before] = last_end.try_emplace(place, std::pair(-1.0, ItemId{-1})).first->second;
    if (before >= 0) {
      in_order(is_host_ ? "host times: one after the other on a thread"
                        : "device times: one after the other on a stream",
               "start", end, times.start, concat("the end of operator ", before));
    }
    if (times.end) {
      end = *times.end;
      before = node.id;
    }
    if (is_host_ || place.find("gpu") == std::string::npos) return;
    const std::pair<std::string_view, const std::optional<double>*> fields[] = {
        {"start", &times.start}, {"kern", &times.kern}, {"end", &times.end}};
    for (const auto& [member, time] : fields) {
      if (!*time || !std::isfinite(**time)) continue;
      context_.findings.compare("device times: what an event can tell", here(member),
                                fifteen_digits(**time), fifteen_digits(as_event_time(**time)));
    }
  }

  const CheckContext& context_;
  bool is_host_;
};

}  // namespace

void check_times(const CheckContext& context) {
  TimesCheck(context, true).run();
  TimesCheck(context, false).run();
}

}  // namespace tenon::documents::megengine
