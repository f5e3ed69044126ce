#pragma once

#include "ir/attribute.h"
#include "program/control.h"

#include <map>
#include <string>

namespace tenon::codegen {

/// An attribute of an operator as programs have it, with symbols by number.
ProgramAttribute program_attribute(const std::string& name, const AttrValue& value,
                                   const std::map<std::string, std::size_t>& symbols);

}  // namespace tenon::codegen
