#pragma once

#include "base/error.h"

#include <string>

namespace tenon::inline base {

/// Writes the details of an internal error to a file and returns the line for the user: the error,
/// its place, and the file to report. The file is in the user's cache folder, or in the folder of
/// temporary files; equal errors share one.
std::string report(const InternalError& error) noexcept;

}  // namespace tenon::inline base
