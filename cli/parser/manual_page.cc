// The manual page, in the man macros of troff.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include "cli/parser/command_tree.h"

namespace interlock {
namespace {

/// `text` with what troff would take for its own escaped.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else if (c == '\'') {
      safe += "\\(aq";
    } else {
      safe += c;
    }
  }
  return safe.starts_with('.') ? "\\&" + safe : safe;
}

std::string bold(const std::string& text) { return "\\fB" + escaped(text) + "\\fR"; }
std::string italic(const std::string& text) { return "\\fI" + escaped(text) + "\\fR"; }

std::string type_of(const Option& option) {
  if (option.value == Option::Value::None) return "";
  const bool listed = !option.choices.empty() && option.choices.size() <= 8;
  const bool told = option.type != "TEXT" && !option.type.empty();
  return told ? option.type : listed ? "NAME" : "TEXT";
}

std::string option_text(const Option& option) {
  std::string text = ".TP\n";
  std::string names;
  for (const std::string& name : option.names) {
    names += (names.empty() ? "" : ", ") + (option.positional ? italic(name) : bold(name));
  }
  const std::string type = option.positional ? "" : type_of(option);
  text += names + (type.empty() ? "" : " " + italic(type)) + "\n" + escaped(option.summary);
  if (!option.otherwise.empty()) text += "; default " + escaped(option.otherwise);
  if (!option.choices.empty() && option.choices.size() <= 8) {
    text += "\n(";
    for (const std::string& choice : option.choices) {
      text += (&choice == option.choices.data() ? "" : ", ") + bold(choice);
    }
    text += ")";
  }
  return text + "\n";
}

/// Returns how the command is typed.
std::string usage(const Command& node) {
  std::string text = bold("interlock " + node.path);
  const bool options = std::any_of(node.options.begin(), node.options.end(),
                                   [](const Option& option) { return !option.positional; });
  if (options) text += " [" + italic("options") + "]";
  for (const Option& option : node.options) {
    if (!option.positional) continue;
    const std::string word = italic(option.names.front()) + (option.several ? " ..." : "");
    text += option.rules.required ? " " + word : " [" + word + "]";
  }
  if (!node.commands.empty()) text += " " + italic("command");
  return text;
}

constexpr const char* kEnd =
    ".SH ENVIRONMENT\n.TP\n\\fBINTERLOCK_DATA\\fR\nfolder of models, machines, scenarios and the "
    "schema, in place of the installed one\n.TP\n\\fBNO_COLOR\\fR\nif set, nothing is coloured\n"
    ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n1\na bug in interlock, or a target that was to be "
    "checked is missed\n.TP\n2\na mistake in the input, or no size of plan that "
    "fits\n.TP\n130\ninterrupted by Ctrl\\-C\n";

}  // namespace

std::string manual_page(const Command& root, const std::string& version) {
  std::string text = ".TH INTERLOCK 1 \"\" \"interlock " + version + "\" \"User Commands\"\n.nh\n";
  text += ".SH NAME\ninterlock \\- " +
          escaped("predict step time, utilisation and memory of model-parallel training") + "\n";
  text += ".SH SYNOPSIS\n";
  for (const Command& node : root.commands) text += usage(node) + "\n.br\n";
  text +=
      ".SH DESCRIPTION\n" + escaped(root.summary) +
      ".\nA scenario is a JSON file that names a model, a machine and how one is trained on the "
      "other.\n.SH OPTIONS\n";
  for (const Option& option : root.options) text += option_text(option);
  text += ".SH COMMANDS\n";
  for (const Command* node : all_commands(root)) {
    text += ".SS " + escaped("interlock " + node->path) + "\n" + escaped(node->summary) +
            "\n.PP\n" + usage(*node) + "\n";
    for (const Option& option : node->options) {
      if (option.names.front() != "-h" && option.names.front() != "--help") {
        text += option_text(option);
      }
    }
  }
  text += kEnd;
  text += ".SH EXAMPLES\n.nf\n";
  std::istringstream lines(root.footer.substr(0, root.footer.find("\n\n")));
  std::string line;
  std::getline(lines, line);  // its heading
  while (std::getline(lines, line)) text += escaped(line) + "\n";
  return text + ".fi\n";
}

}  // namespace interlock
