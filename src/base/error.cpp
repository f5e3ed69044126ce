#include "base/error.h"

#include <utility>

namespace tenon::inline base {

void TextPart::append_literal(std::string& text, const void* value) {
  text += static_cast<const char*>(value);
}
template <>
void TextPart::append<std::string>(std::string& text, const void* value) {
  text += *static_cast<const std::string*>(value);
}
template <>
void TextPart::append<std::string_view>(std::string& text, const void* value) {
  text += *static_cast<const std::string_view*>(value);
}
template <>
void TextPart::append<int>(std::string& text, const void* value) {
  text += std::to_string(*static_cast<const int*>(value));
}
template <>
void TextPart::append<unsigned>(std::string& text, const void* value) {
  text += std::to_string(*static_cast<const unsigned*>(value));
}
template <>
void TextPart::append<long>(std::string& text, const void* value) {
  text += std::to_string(*static_cast<const long*>(value));
}
template <>
void TextPart::append<unsigned long>(std::string& text, const void* value) {
  text += std::to_string(*static_cast<const unsigned long*>(value));
}

std::string join_parts(std::initializer_list<TextPart> parts) {
  std::string text;
  for (const TextPart& part : parts) part.append_to(text);
  return text;
}

void PlacedError::locate(std::string place) {
  if (has_place()) return;
  at_ = std::move(place);
  compose();
}

Error::Error(std::string summary, ErrorKind kind) : kind_(kind), summary_(std::move(summary)) {
  text_ = summary_;
}
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

void Error::set_further(std::vector<Error> errors) { further_ = std::move(errors); }

Error& Error::set(std::string& field, std::initializer_list<TextPart> parts) {
  field = join_parts(parts);
  compose();
  return *this;
}

void Error::compose() {
  text_ = summary_;
  const std::pair<const char*, const std::string*> lines[] = {
      {"\n  at        ", &at_},
      {"\n  expected  ", &expected_},
      {"\n  got       ", &got_},
      {"\n  hint      ", &hint_},
  };
  for (const auto& [label, line] : lines) {
    if (!line->empty()) text_ += label + *line;
  }
}

InternalError::InternalError(const char* condition, std::string_view should_hold, const char* file,
                             int line)
    : source_(concat(" (", condition, " at ", file, ":", line, ")")) {
  const std::size_t end = should_hold.find('\n');
  summary_ = concat("internal error: ", should_hold.substr(0, end));
  if (end != std::string_view::npos) add_details(should_hold.substr(end + 1));
  compose();
}

InternalError::InternalError(const InternalError&) = default;
InternalError::~InternalError() = default;

void InternalError::add_details(std::string_view text) {
  details_ += text;
  if (!text.ends_with('\n')) details_ += '\n';
}

void InternalError::compose() {
  text_ = concat(summary_, source_, at_.empty() ? "" : concat(", at ", at_));
}

}  // namespace tenon::inline base
