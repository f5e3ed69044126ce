#include "base/error.h"

#include <utility>

namespace tenon {

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

Error::Error(std::string summary, ErrorKind kind)
    : kind_(kind), summary_(std::move(summary)), text_(summary_) {}
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

Error& Error::set(std::string& field, std::initializer_list<TextPart> parts) {
  field = join_parts(parts);
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
  return *this;
}

InternalError::InternalError(const char* condition, std::string_view should_hold, const char* file,
                             int line)
    : text_(
          concat("internal error: ", should_hold, " (", condition, " at ", file, ":", line, ")")) {}

InternalError::InternalError(const InternalError&) = default;
InternalError::~InternalError() = default;

}  // namespace tenon
