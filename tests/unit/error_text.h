#pragma once

#include "base/error.h"

#include <string>

namespace tenon {

/// The text of the Error that a call ends in, or "no error".
template <class Call>
std::string error_text(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// Its first line.
template <class Call>
std::string error_summary(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.summary();
  }
  return "no error";
}

}  // namespace tenon
