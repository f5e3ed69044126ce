#pragma once

#include "base/error.h"
#include "tenon/tenon.h"

#include <exception>
#include <new>
#include <string>

namespace tenon::embed {

/// Stores the message for `tenon_last_error` of this thread; returns the status.
tenon_status fail(tenon_status status, const char* text) noexcept;
/// Stores the message of the exception that is being handled.
tenon_status fail_with_current() noexcept;

/// Runs the body of a C function; converts exceptions to a status.
template <class Function>
tenon_status call(Function&& function) noexcept {
  try {
    function();
    return TENON_OK;
  } catch (...) {
    return fail_with_current();
  }
}

/// Throws Error (Usage) for a null pointer.
void require(const void* argument, const char* name);

/// Copies a text; the caller frees it with `tenon_text_free`.
char* text_for_caller(const std::string& text);

}  // namespace tenon::embed
