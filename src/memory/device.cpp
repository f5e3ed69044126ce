#include "memory/device.h"

#include "base/error.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace tenon::memory {
namespace {

using Json = nlohmann::json;

// One object of a description. Reading a field marks it as known; unknown fields are reported.
class DeviceFields {
 public:
  DeviceFields(const Json& json, std::string_view source, std::string place)
      : json_(json), source_(source), place_(std::move(place)) {
    if (!json.is_object()) throw error("").expected("a JSON object");
  }
  double positive(const char* name, std::optional<double> otherwise = {}) {
    known_.push_back(name);
    const auto found = json_.find(name);
    if (found == json_.end()) {
      if (otherwise) return *otherwise;
      throw error(name).got("no such field");
    }
    const double value = found->is_number() ? found->get<double>() : -1;
    const bool is_right = std::isfinite(value) && (value > 0 || (otherwise && value == 0));
    if (!is_right || value > 1e24)
      throw error(name).expected("a positive number").got(found->dump());
    return value;
  }
  std::string text(const char* name) {
    known_.push_back(name);
    const auto found = json_.find(name);
    if (found == json_.end() || !found->is_string()) throw error(name).expected("a text");
    return found->get<std::string>();
  }
  const Json* object(const char* name) {
    known_.push_back(name);
    const auto found = json_.find(name);
    return found == json_.end() ? nullptr : &*found;
  }
  void refuse_others() const {
    for (const auto& [name, value] : json_.items()) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        throw error(name).got("a field that nobody reads").hint(suggest_name(name, known_));
      }
    }
  }

 private:
  Error error(std::string_view name) const {
    return Error("a description of a device cannot be read", ErrorKind::Usage)
        .at(source_, ", ", place_, name);
  }
  const Json& json_;
  std::string_view source_;
  std::string place_;
  std::vector<std::string> known_;
};

}  // namespace

double DeviceSpec::seconds(double flops, double bytes) const {
  return std::max(flops / flops_per_s, bytes / bytes_per_s);
}

DeviceSpec parse_device(std::string_view text, std::string_view source) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw Error("a description of a device is no JSON", ErrorKind::Usage).at(source);
  }
  DeviceFields fields(json, source, "$.");
  DeviceSpec device;
  device.name = fields.text("name");
  device.flops_per_s = fields.positive("flops_per_s");
  device.bytes_per_s = fields.positive("bytes_per_s");
  device.memory_bytes =
      static_cast<std::uint64_t>(std::min(fields.positive("memory_bytes", 0.0), 0x1p56));
  if (const Json* described = fields.object("link")) {
    DeviceFields link(*described, source, "$.link.");
    device.link =
        Link{link.text("name"), link.positive("bytes_per_s"), link.positive("latency_s", 0.0)};
    link.refuse_others();
  }
  fields.refuse_others();
  return device;
}

}  // namespace tenon::memory
