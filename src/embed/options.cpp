#include "embed/options.h"

#include "base/error.h"
#include "base/text.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon::embed {

using Json = nlohmann::ordered_json;

namespace {

// Destroys a value bottom-up without the default destructor, which allocates.
void dismantle(Json& value) noexcept {
  if (auto* items = value.get_ptr<Json::array_t*>()) {
    for (; !items->empty(); items->pop_back()) dismantle(items->back());
  } else if (auto* members = value.get_ptr<Json::object_t*>()) {
    for (; !members->empty(); members->pop_back()) dismantle(members->back().second);
  }
}

}  // namespace

struct Options::Read {
  Json json = Json::object();
  std::vector<std::string> asked;

  Read() = default;
  Read(const Read&) = delete;
  ~Read() { dismantle(json); }

  const Json* find(const char* name) {
    asked.emplace_back(name);
    const auto found = json.find(name);
    return found == json.end() || found->is_null() ? nullptr : &*found;
  }
};

namespace {

Error wrong(const char* name, const char* expected, const Json& got) {
  return Error(concat("option '", name, "' is of the wrong type"), ErrorKind::Usage)
      .expected(expected)
      .got(got.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Options::Options(const char* text) : read_(std::make_unique<Read>()) {
  if (text == nullptr || *text == '\0') return;
  read_->json = Json::parse(text, nullptr, false);
  if (!read_->json.is_object()) {
    throw Error("options are a JSON object", ErrorKind::Usage)
        .expected("{\"name\": value, …}")
        .got(std::string_view(text).substr(0, 200));
  }
}
Options::~Options() = default;

std::optional<std::string> Options::text(const char* name) {
  const Json* found = read_->find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) throw wrong(name, "a text", *found);
  return found->get<std::string>();
}

std::optional<std::int64_t> Options::integer(const char* name, std::int64_t least,
                                             std::int64_t most) {
  const Json* found = read_->find(name);
  if (found == nullptr) return std::nullopt;
  const bool is_fit = found->is_number_integer() &&
                      (!found->is_number_unsigned() ||
                       found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most));
  if (!is_fit || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most) {
    const std::string range = concat("a whole number from ", least, " to ", most);
    throw wrong(name, range.c_str(), *found);
  }
  return found->get<std::int64_t>();
}

std::optional<double> Options::real(const char* name) {
  const Json* found = read_->find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) throw wrong(name, "a number", *found);
  return found->get<double>();
}

std::optional<bool> Options::flag(const char* name) {
  const Json* found = read_->find(name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) throw wrong(name, "true or false", *found);
  return found->get<bool>();
}

std::vector<std::string> Options::texts(const char* name) {
  const Json* found = read_->find(name);
  if (found == nullptr) return {};
  if (found->is_string()) return {found->get<std::string>()};
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (!found->is_array() || !std::ranges::all_of(*found, is_text))
    throw wrong(name, "a list of texts", *found);
  return found->get<std::vector<std::string>>();
}

std::vector<std::pair<std::string, std::string>> Options::settings(const char* name) {
  const Json* found = read_->find(name);
  if (found == nullptr) return {};
  if (!found->is_object()) throw wrong(name, "an object of settings", *found);
  std::vector<std::pair<std::string, std::string>> list;
  for (const auto& [key, value] : found->items())
    list.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  return list;
}

std::vector<std::pair<std::string, std::vector<std::int64_t>>> Options::shapes(const char* name) {
  const Json* found = read_->find(name);
  if (found == nullptr) return {};
  if (!found->is_object()) throw wrong(name, "an object of shapes", *found);
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> list;
  const auto is_integer = [](const Json& item) { return item.is_number_integer(); };
  for (const auto& [key, value] : found->items()) {
    if (!value.is_array() || !std::ranges::all_of(value, is_integer))
      throw wrong(name, "an object of lists of integers", *found);
    list.emplace_back(key, value.get<std::vector<std::int64_t>>());
  }
  return list;
}

bool Options::is_list(const char* name) const {
  const auto found = read_->json.find(name);
  return found != read_->json.end() && found->is_array();
}

void Options::finish() const {
  for (const auto& [key, value] : read_->json.items()) {
    if (std::ranges::find(read_->asked, key) != read_->asked.end()) continue;
    throw Error(concat("there is no option '", key, "'"), ErrorKind::Usage)
        .hint(suggest_name(key, read_->asked));
  }
}

}  // namespace tenon::embed
