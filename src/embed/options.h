#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::embed {

/// Options as a caller writes them: a JSON object. Each is asked for by name; one that nobody asked
/// for is refused with the nearest name.
class Options {
 public:
  /// Throws Error (Usage) for text that is no JSON object. Null: no options.
  explicit Options(const char* text);
  ~Options();

  std::optional<std::string> text(const char* name);
  std::optional<std::int64_t> integer(const char* name, std::int64_t least, std::int64_t most);
  std::optional<double> real(const char* name);
  std::optional<bool> flag(const char* name);
  std::vector<std::string> texts(const char* name);
  /// An object of texts, numbers or flags, each as text.
  std::vector<std::pair<std::string, std::string>> settings(const char* name);
  /// An object of lists of integers.
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes(const char* name);
  /// Whether the option is there and is a list.
  bool is_list(const char* name) const;

  /// Throws Error (Usage) if there is one that nobody asked for.
  void finish() const;

 private:
  struct Read;
  std::unique_ptr<Read> read_;
};

}  // namespace tenon::embed
