#include "base/pattern.h"

#include "base/error.h"

#include <re2/re2.h>

#include <string>

namespace tenon::inline base {

Pattern::Pattern(std::string_view text) {
  RE2::Options options;
  options.set_log_errors(false);
  compiled_ = std::make_unique<const RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (!compiled_->ok()) {
    throw Error(concat("pattern: ", compiled_->error()))
        .got("'", std::string(text.substr(0, 200)), "'");
  }
}

Pattern::Pattern(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

bool Pattern::matches(std::string_view text) const {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *compiled_);
}

}  // namespace tenon::inline base
