#include "profile/trace.h"

#include "base/text.h"
#include "profile/summary.h"

#include <nlohmann/json.hpp>

namespace tenon::profile {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kHost = 1, kDevice = 2;  // process ids in the trace

class Trace {
 public:
  explicit Trace(const Profile& profile) : profile_(profile) {}

  std::string text() {
    name_lanes();
    for (std::size_t k = 0; k < profile_.steps.size(); ++k) add_step(k);
    for (std::size_t k = 0; k < profile_.steps.size(); ++k) add_arrows(k);
    add_memory();
    const Json json = {{"displayTimeUnit", "ns"},
                       {"otherData",
                        {{"name", profile_.name},
                         {"device", profile_.device},
                         {"target", profile_.target},
                         {"by", "tenon"}}},
                       {"traceEvents", std::move(events_)}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  int process_of(std::uint32_t lane) const {
    return profile_.lanes[lane].is_device ? kDevice : kHost;
  }

  void name_lanes() {
    const auto name = [&](const char* what, int process, std::uint32_t lane,
                          const std::string& text) {
      events_.push_back({{"name", what},
                         {"ph", "M"},
                         {"pid", process},
                         {"tid", lane},
                         {"args", {{"name", text}}}});
    };
    name("process_name", kHost, 0, "host");
    name("process_name", kDevice, 0, "device");
    for (std::uint32_t k = 0; k < profile_.lanes.size(); ++k)
      name("thread_name", process_of(k), k, profile_.lanes[k].name);
  }

  void add_span(std::size_t k, const Profile::Span& span) {
    const Profile::Step& step = profile_.steps[k];
    const double least = least_seconds(profile_, step), seconds = step.last_seconds();
    Json args = {{"step", k},
                 {"op", step.op},
                 {"value", step.value},
                 {"kernel", step.kernel},
                 {"candidate", step.candidate},
                 {"shapes", shapes_text(profile_, step)},
                 {"flops", step.flops},
                 {"bytes", step.bytes},
                 {"waited_us", (span.kern - span.start) * 1e6},
                 {"median_us", step.seconds.median * 1e6}};
    if (least > 0 && seconds > 0) args["of_roofline"] = least / seconds;
    if (!step.source.empty()) args["source"] = step.source;
    events_.push_back({{"name", step.name},
                       {"cat", to_string(step.kind)},
                       {"ph", "X"},
                       {"ts", span.start * 1e6},
                       {"dur", (span.end - span.start) * 1e6},
                       {"pid", process_of(span.lane)},
                       {"tid", span.lane},
                       {"args", std::move(args)}});
  }

  void add_step(std::size_t k) {
    for (const Profile::Span& span : profile_.steps[k].device) add_span(k, span);
    for (const Profile::Span& span : profile_.steps[k].host) add_span(k, span);
  }

  static const Profile::Span* place_of(const Profile::Step& step, bool is_end) {
    const auto& spans = step.device.empty() ? step.host : step.device;
    if (spans.empty()) return nullptr;
    return is_end ? &spans.back() : &spans.front();
  }

  void add_arrows(std::size_t k) {
    const Profile::Span* to = place_of(profile_.steps[k], false);
    if (to == nullptr) return;
    for (const std::uint32_t maker : profile_.steps[k].after) {
      const Profile::Span* from = place_of(profile_.steps[maker], true);
      if (from == nullptr) continue;
      const std::size_t id = ++arrows_;
      const auto end = [&](const char* phase, const Profile::Span& span, double seconds) {
        Json event = {{"name", "value"}, {"cat", "flow"},       {"ph", phase},
                      {"id", id},        {"ts", seconds * 1e6}, {"pid", process_of(span.lane)},
                      {"tid", span.lane}};
        if (*phase == 'f') event["bp"] = "e";
        events_.push_back(std::move(event));
      };
      // Flow arrows need start and end points inside the two steps.
      end("s", *from, (from->kern + from->end) / 2);
      end("f", *to, (to->kern + to->end) / 2);
    }
  }

  void add_memory() {
    const LiveCurve live = live_curve(profile_);
    for (std::size_t k = 0; k < live.bytes.size(); ++k) {
      if (k > 0 && live.bytes[k] == live.bytes[k - 1]) continue;
      events_.push_back({{"name", "arena alive"},
                         {"ph", "C"},
                         {"pid", kDevice},
                         {"tid", 0},
                         {"ts", profile_.steps[k].start() * 1e6},
                         {"args", {{"bytes", live.bytes[k]}}}});
    }
  }

  const Profile& profile_;
  Json events_ = Json::array();
  std::size_t arrows_ = 0;
};

}  // namespace

std::string chrome_trace(const Profile& profile) { return Trace(profile).text(); }

}  // namespace tenon::profile
