#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon::documents {

/// A document format by its name and the start of its files. Builds without documents know these
/// too, and name the format that they cannot read.
struct KnownFormat {
  /// Name in `--to=NAME`.
  std::string name;
  /// One line for lists.
  std::string summary;
  /// Returns whether a file that starts with `head` (some KB) is probably of the format.
  bool (*recognises)(std::string_view head);
};
std::span<const KnownFormat> known_formats();
/// Returns null for an unknown name.
const KnownFormat* find_known_format(std::string_view name);

}  // namespace tenon::documents
