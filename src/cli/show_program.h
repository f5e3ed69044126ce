#pragma once

#include "base/page.h"
#include "program/program.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// Describes a program: inputs and outputs, steps with their kernels and code sizes, largest
/// buffers. Does not run it.
Page describe_program(const Program& program, const std::string& name);

/// Returns the problems of a readable program: constants that differ from those written.
std::vector<std::string> problems_of(const Program& program);

}  // namespace tenon::cli
