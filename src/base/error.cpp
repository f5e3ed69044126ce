#include "base/error.h"

#include <utility>

namespace tenon {

Error::Error(std::string summary, ErrorKind kind)
    : kind_(kind), summary_(std::move(summary)), text_(summary_) {}

Error& Error::set(std::string& part, std::string text) {
  part = std::move(text);
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
    : text_(concat("internal error: ", should_hold, " (", condition, " at ", file, ":", line, ")")) {}

}  // namespace tenon
