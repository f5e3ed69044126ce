#pragma once

#include "documents/document.h"

#include <gtest/gtest.h>

/// Skips a test in a build without documents.
#define NEEDS_DOCUMENTS() \
  if (tenon::documents::document_formats().empty()) GTEST_SKIP() << "needs documents"
