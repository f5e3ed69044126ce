#include "cli/commands.h"

int main(int argc, char** argv) { return tenon::cli::run_command_line(argc, argv); }
