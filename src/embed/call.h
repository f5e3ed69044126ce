#pragma once

#include "base/error.h"
#include "tenon/tenon.h"

#include <exception>
#include <new>
#include <string>

namespace tenon::embed {

/// Remembers what went wrong for `tenon_last_error`, in this thread; gives the status back.
tenon_status fail(tenon_status status, const char* text) noexcept;
/// The same of the exception that is being handled.
tenon_status fail_with_current() noexcept;

/// Calls something on behalf of a C function: no exception leaves it.
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

/// A text that the caller gives back with `tenon_text_free`.
char* text_for_caller(const std::string& text);

}  // namespace tenon::embed
