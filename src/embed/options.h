#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::embed {

/// Options of a call as a JSON object. Each is queried by name; options that were never queried are
/// rejected with the nearest known name.
class Options {
 public:
  /// Throws Error (Usage) if the text is not a JSON object. Null: no options.
  explicit Options(const char* text);
  ~Options();

  std::optional<std::string> text(const char* name);
  std::optional<std::int64_t> integer(const char* name, std::int64_t least, std::int64_t most);
  std::optional<double> real(const char* name);
  std::optional<bool> flag(const char* name);
  std::vector<std::string> texts(const char* name);
  /// Reads an object of texts, numbers or flags, each converted to text.
  std::vector<std::pair<std::string, std::string>> settings(const char* name);
  /// Reads an object of integer lists.
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes(const char* name);
  /// True if the option is present and a list.
  bool is_list(const char* name) const;

  /// Throws Error (Usage) if an option was never queried.
  void finish() const;

 private:
  struct Read;
  std::unique_ptr<Read> read_;
};

}  // namespace tenon::embed
