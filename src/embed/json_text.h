#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::embed {

/// Builds a JSON object as text, member by member. The JSON library's containers are avoided here:
/// their destructors allocate, and a failed allocation there would terminate the process.
class JsonObject {
 public:
  JsonObject& add(std::string_view name, std::string_view text);
  JsonObject& add(std::string_view name, double number);
  template <std::integral Number>
  JsonObject& add(std::string_view name, Number number) {
    return add_json(name, std::to_string(number));
  }
  /// Adds a value that is already JSON.
  JsonObject& add_json(std::string_view name, std::string_view json);
  std::string text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

std::string json_list(const std::vector<std::string>& items);

}  // namespace tenon::embed
