#include "frontends/document.h"

#include <algorithm>
#include <vector>

namespace tenon {

#define TENON_DOCUMENT_FORMAT(name) \
  namespace name {                  \
  DocumentFormat document_format(); \
  }
#include "frontends/list.inc"
#undef TENON_DOCUMENT_FORMAT

std::span<const DocumentFormat> document_formats() {
  static const std::vector<DocumentFormat> formats = {
#define TENON_DOCUMENT_FORMAT(name) name::document_format(),
#include "frontends/list.inc"
#undef TENON_DOCUMENT_FORMAT
  };
  return formats;
}

const DocumentFormat* find_document_format(std::string_view name) {
  const auto formats = document_formats();
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [&](const DocumentFormat& format) { return format.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace tenon
