#include "embed/call.h"

#include "base/internal_report.h"
#include "base/interrupted.h"
#include "base/version.h"

#include <cstdlib>
#include <cstring>

namespace tenon::embed {
namespace {

// Thread-local, like errno.
std::string& last_error() {
  thread_local std::string text;
  return text;
}
thread_local bool has_no_text = false;

constexpr const char* kNoMemory = "out of memory";

}  // namespace

tenon_status fail(tenon_status status, const char* text) noexcept {
  has_no_text = false;
  try {
    last_error() = text;
  } catch (...) {
    has_no_text = true;  // even the copy of the text failed
  }
  return status;
}

tenon_status fail_with_current() noexcept {
  try {
    throw;
  } catch (const Interrupted& error) {
    return fail(TENON_INTERRUPTED, error.what());
  } catch (const Error& error) {
    return fail(static_cast<tenon_status>(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(TENON_OUT_OF_MEMORY, kNoMemory);
  } catch (const InternalError& error) {
    return fail(TENON_INTERNAL, report(error).c_str());
  } catch (const std::exception& error) {
    return fail(TENON_INTERNAL, error.what());
  } catch (...) {
    return fail(TENON_INTERNAL, "something was thrown that is no exception");
  }
}

void require(const void* argument, const char* name) {
  if (argument == nullptr) throw Error(concat("'", name, "' is null"), ErrorKind::Usage);
}

char* text_for_caller(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace tenon::embed

extern "C" {

const char* tenon_version(void) { return tenon::kVersion; }
int tenon_abi_version(void) { return TENON_ABI_VERSION; }
const char* tenon_last_error(void) {
  return tenon::embed::has_no_text ? tenon::embed::kNoMemory : tenon::embed::last_error().c_str();
}
void tenon_text_free(char* text) { std::free(text); }
}
