#pragma once

#include "base/page.h"
#include "program/program.h"

#include <string>
#include <vector>

namespace tenon::cli {

/// A program as a page: what it takes and gives, its steps with their kernels and the bytes of
/// code, its largest buffers. Nothing of it runs.
Page describe_program(const Program& program, const std::string& name);

/// What is wrong with a program that could be read: constants that are not those it was written
/// with.
std::vector<std::string> problems_of(const Program& program);

}  // namespace tenon::cli
