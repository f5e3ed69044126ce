#include "documents/document.h"

namespace tenon::documents {

// Takes the place of list.cpp in a build with TENON_DOCUMENTS=OFF.
std::span<const DocumentFormat> document_formats() { return {}; }

}  // namespace tenon::documents
