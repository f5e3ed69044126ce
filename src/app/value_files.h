#pragma once

#include "ops/definition/evaluation.h"

#include <string>
#include <vector>

namespace tenon::app {

/// Returns DIR of an option's `@DIR`. Throws Error (Usage) for other text.
std::string folder_of(const std::string& text, const char* option);

/// Creates the folder of an option's `@DIR` before the work, whose results could not be written
/// otherwise.
void prepare_folder(const std::string& text, const char* option);

/// Writes values into the folder of an option's `@DIR`, as `write_value` does; skipped for an empty
/// text.
void save_values(const std::vector<std::string>& names, const std::vector<Datum>& values,
                 const std::string& text, const char* option);

}  // namespace tenon::app
