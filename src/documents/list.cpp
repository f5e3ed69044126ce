#include "documents/document.h"

#include <vector>

namespace tenon::documents {

#define TENON_DOCUMENT_FORMAT(name) \
  namespace name {                  \
  DocumentFormat document_format(); \
  }
#include "documents/list.inc"
#undef TENON_DOCUMENT_FORMAT

std::span<const DocumentFormat> document_formats() {
  static const std::vector<DocumentFormat> formats = {
#define TENON_DOCUMENT_FORMAT(name) name::document_format(),
#include "documents/list.inc"
#undef TENON_DOCUMENT_FORMAT
  };
  return formats;
}

}  // namespace tenon::documents
