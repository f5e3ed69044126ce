#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/out.h"

namespace tenon::cli {
namespace {

// A subcommand, with its options ("--format").
struct CompletedCommand {
  std::string name, summary;
  std::vector<std::string> options;
};

std::string names(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> list;
  for (const CompletedCommand& command : commands) list.push_back(command.name);
  return join(list, " ");
}

// Completes files everywhere, and the subcommand's options for a word that begins with a dash.
std::string bash_script(const std::vector<CompletedCommand>& commands) {
  std::string text = concat(
      "# tenon completions bash: source it, or put it into bash-completion's folder.\n"
      "_tenon() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} options=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n"
      "    COMPREPLY=($(compgen -W \"",
      names(commands), " help --help --version\" -- \"$word\"))\n", "    return\n", "  fi\n",
      "  case ${COMP_WORDS[1]} in\n");
  for (const CompletedCommand& command : commands)
    text += concat("    ", command.name, ") options=\"", join(command.options, " "), "\" ;;\n");
  text += concat("    help) COMPREPLY=($(compgen -W \"", names(commands),
                 "\" -- \"$word\")); return ;;\n");
  text +=
      "  esac\n"
      "  if [[ $word == -* ]]; then\n"
      "    COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
      "  else\n"
      "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
      "  fi\n"
      "}\n"
      "complete -o filenames -F _tenon tenon ./tenon\n";
  return text;
}

std::string zsh_script(const std::vector<CompletedCommand>& commands) {
  std::string text =
      "#compdef tenon\n"
      "# tenon completions zsh: put it as _tenon into a folder of $fpath.\n"
      "_tenon() {\n"
      "  if ((CURRENT == 2)); then\n"
      "    local -a commands=(\n";
  for (const CompletedCommand& command : commands) {
    std::string summary;
    for (const char c : command.summary)
      summary += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += concat("      '", command.name, ":", summary, "'\n");
  }
  text +=
      "    )\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local -a options\n"
      "  case ${words[2]} in\n";
  for (const CompletedCommand& command : commands)
    text += concat("    ", command.name, ") options=(", join(command.options, " "), ") ;;\n");
  text +=
      "  esac\n"
      "  if [[ ${words[CURRENT]} == -* ]]; then compadd -- $options; else _files; fi\n"
      "}\n"
      "_tenon \"$@\"\n";
  return text;
}

std::string fish_script(const std::vector<CompletedCommand>& commands) {
  std::string text =
      "# tenon completions fish: put it as tenon.fish into a folder of completions.\n";
  for (const CompletedCommand& command : commands) {
    std::string summary;
    for (const char c : command.summary)
      summary += c == '\'' ? std::string("\\'") : std::string(1, c);
    text += concat("complete -c tenon -n __fish_use_subcommand -a ", command.name, " -d '", summary,
                   "'\n");
    for (const std::string& option : command.options) {
      text += concat("complete -c tenon -n '__fish_seen_subcommand_from ", command.name, "' -l ",
                     option.substr(2), "\n");
    }
  }
  return text;
}

// The subcommands and their options.
std::vector<CompletedCommand> completed(const Commands& commands) {
  std::vector<CompletedCommand> list;
  for (const Subcommand& subcommand : commands.list()) {
    CompletedCommand& made = list.emplace_back(
        CompletedCommand{subcommand.app->get_name(), subcommand.app->get_description(), {}});
    for (const CLI::Option* option : subcommand.app->get_options()) {
      for (const std::string& long_name : option->get_lnames())
        made.options.push_back("--" + long_name);
    }
  }
  return list;
}

int completions(const std::string& shell, const std::vector<CompletedCommand>& commands) {
  if (shell == "bash") {
    out() << bash_script(commands);
  } else if (shell == "zsh") {
    out() << zsh_script(commands);
  } else if (shell == "fish") {
    out() << fish_script(commands);
  } else {
    throw Error(concat("no completions for a shell called '", shell, "'"), ErrorKind::Usage)
        .hint(suggest_name(shell, std::vector<std::string>{"bash", "zsh", "fish"}));
  }
  return 0;
}

}  // namespace

void add_completions(Commands& commands) {
  const auto shell = std::make_shared<std::string>();
  CLI::App& app =
      commands.add("completions", "Print a script for completion in a shell",
                   [&commands, shell] { return completions(*shell, completed(commands)); });
  app.add_option("shell", *shell, "bash, zsh or fish")->required();
}

}  // namespace tenon::cli
