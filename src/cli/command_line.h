#pragma once

namespace tenon::cli {

/// Parses the command line and runs the subcommand; returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace tenon::cli
