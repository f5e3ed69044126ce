#include "embed/json_text.h"

#include "base/error.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

namespace tenon::embed {
namespace {

std::string scalar_text(const nlohmann::json& scalar) {
  return scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

JsonObject& JsonObject::add(std::string_view name, std::string_view text) {
  return add_json(name, scalar_text(text));
}

JsonObject& JsonObject::add(std::string_view name, double number) {
  return add_json(name, scalar_text(number));
}

JsonObject& JsonObject::add_json(std::string_view name, std::string_view json) {
  members_ += concat(members_.empty() ? "" : ",", scalar_text(name), ":", json);
  return *this;
}

std::string json_list(const std::vector<std::string>& items) {
  return concat("[", join(items, ","), "]");
}

}  // namespace tenon::embed
