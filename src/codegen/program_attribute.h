#pragma once

#include "ir/attribute.h"
#include "program/control.h"

#include <map>
#include <string>

namespace tenon::codegen {

/// Converts an operator attribute to the program's form, with numbered symbols.
ProgramAttribute program_attribute(const std::string& name, const AttrValue& value,
                                   const std::map<std::string, std::size_t>& symbols);

}  // namespace tenon::codegen
