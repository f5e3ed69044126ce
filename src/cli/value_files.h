#pragma once

#include "ops/evaluation.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// DIR of an option's `@DIR`. Throws Error (Usage) for anything else.
std::string folder_of(const std::string& text, const char* option);

/// Makes the folder that an option's `@DIR` names, before work begins whose results would have no
/// place to go to.
void prepare_folder(const std::string& text, const char* option);

/// Writes values into the folder that an option's `@DIR` names, as `write_value` does; an empty
/// text writes nothing.
void save_values(const std::vector<std::string>& names, const std::vector<Datum>& values,
                 const std::string& text, const char* option);

}  // namespace tenon::cli
