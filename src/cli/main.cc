// SPDX-FileCopyrightText: the ckpt authors
// SPDX-License-Identifier: Apache-2.0
//
// The `ckpt` command line: list, show, verify.
#include <CLI/CLI.hpp>
#include <iostream>

#include "ckpt.h"
#include "cli/commands.h"

namespace {

using Command = cli::Exit (*)(const cli::Request&);

// A subcommand with the arguments that all share; `chosen` is set when it is the one given.
void AddCommand(CLI::App& app, const char* name, const char* what, Command command,
                cli::Request& request, Command& chosen) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->add_option("PATH", request.path, "A root of checkpoints, or one step's folder")->required();
  sub->add_option("--step", request.step, "This step instead of the newest")
      ->check([](const std::string& text) {
        return text.rfind('-', 0) == 0 ? "must not be negative" : std::string();
      });
  sub->add_flag("--json", request.json, "One JSON object (\"schema\": 1) instead of a table");
  sub->callback([&chosen, command] { chosen = command; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Looks at checkpoints of libckpt; never writes to them."};
  app.name("ckpt");
  app.set_version_flag("--version", std::string("ckpt ") + ckpt_version_string());
  app.require_subcommand(1);
  app.footer(
      "Data goes to stdout, messages and progress to stderr.\n"
      "Exit: 0 good, 1 damaged, 2 usage, 3 not found or none, 4 I/O error.");
  cli::Request request;
  Command chosen = nullptr;
  AddCommand(app, "list", "The committed steps, oldest first", cli::List, request, chosen);
  AddCommand(app, "show", "Tensors, files and who wrote them, blobs", cli::Show, request, chosen);
  AddCommand(app, "verify", "Compare every byte with its checksum", cli::Verify, request, chosen);
  try {
    app.parse(argc, argv);
    return chosen(request);
  } catch (const CLI::ParseError& e) {
    return app.exit(e, std::cout, std::cerr) == 0 ? cli::kGood : cli::kUsage;
  } catch (const std::exception& e) {
    std::cerr << "ckpt: " << e.what() << "\n";
    return cli::kIoError;
  }
}
