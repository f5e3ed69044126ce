#include "base/error.h"
#include "embed/call.h"
#include "program/target.h"
#include "runtime/cuda/describe.h"
#include "runtime/processors.h"

#include <nlohmann/json.hpp>

using namespace tenon;         // NOLINT: one C function
using namespace tenon::embed;  // NOLINT

extern "C" tenon_status tenon_devices(char** json) {
  return call([&] {
    require(json, "json");
    std::string features;
    for (const std::string_view feature : processor_features())
      features += (features.empty() ? "" : ", ") + std::string(feature);
    auto list = nlohmann::ordered_json::array();
    list.push_back({{"name", "cpu"},
                    {"kind", "cpu"},
                    {"usable", true},
                    {"text", concat(usable_threads(), " threads; ", features)}});
    nlohmann::ordered_json gpu = {{"name", "cuda"}, {"kind", "cuda"}};
    try {
      gpu["text"] = cuda::device_text();
      gpu["usable"] = true;
    } catch (const Error& error) {
      gpu["text"] = error.summary();
      gpu["usable"] = false;
    }
    list.push_back(std::move(gpu));
    *json = text_for_caller(list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}
