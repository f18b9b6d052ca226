import type { CommanderError } from "commander";
import type { KitError } from "../base/kit-error.ts";
import type { ErrorCode } from "../protocol/error-code.ts";
import { commandTable } from "./command-table.ts";
import { usageError } from "./report-error.ts";

/** Turns commander's error into a usage error: the fault, the likely meaning, and where to read on. */
export function toUsageError(error: CommanderError, argv: readonly string[]): KitError<ErrorCode> {
  const [first = "", second] = error.message.replace(/^error: /, "").split("\n");
  const message = `${first.charAt(0).toUpperCase()}${first.slice(1).replace(/\.$/, "")}.`;
  const suggestion = second?.replace(/^\(|\)$/g, "");
  const help = `'kit ${[...calledNames(argv), "--help"].join(" ")}' explains the command.`;
  return usageError(message, suggestion ? `${suggestion} ${help}` : help);
}

/** The command that a command line names: `specs list`. */
function calledNames(argv: readonly string[]): readonly string[] {
  const [name, subcommand] = argv.filter((word) => !word.startsWith("-"));
  const entry = commandTable.find((candidate) => candidate.name === name);
  if (!entry) return [];
  const isKnown = "commands" in entry && entry.commands.some((command) => command.name === subcommand);
  return isKnown && subcommand !== undefined ? [entry.name, subcommand] : [entry.name];
}
