import { Command as Commander, Help, Option } from "commander";
import { KitError } from "../base/kit-error.ts";
import { version } from "../base/own-package.ts";
import {
  type AnyEntry,
  type Command,
  type CommandContext,
  type CommandOption,
  type ExitCode,
  globalOptions,
} from "./command.ts";
import { chapters, firstExamples } from "./command-table.ts";
import type { Output } from "./print/output.ts";

/** The options of every command, allowed anywhere on the command line. */
export interface GlobalOptions {
  readonly json: boolean;
  readonly config: string | undefined;
  readonly cwd: string | undefined;
  readonly env: string | false | undefined;
}

/** Runs a command once its command line is parsed. */
export type RunCommand = (
  globals: GlobalOptions,
  command: Pick<Command, "drains"> & { readonly run: (context: CommandContext) => Promise<ExitCode> },
) => Promise<void>;

/**
 * Builds the commander program. Commands are known by name; their options, help and code are loaded when one is
 * called. An invalid command line throws commander's `CommanderError`.
 */
export function createProgram(output: Output, runCommand: RunCommand): Commander {
  const program = new Commander("kit")
    .description("Specs and guidelines of a repository, read in place, and agents that work under them.")
    .version(version, "-v, --version", "Print the version of kit")
    .usage("<command> [options]")
    .addHelpText("after", () => examplesText(firstExamples, output))
    .addHelpText(
      "after",
      "\nEvery command takes --json, --config, --cwd, --env, --no-env and --help.\nKIT_API_KEY is the key that commands send to a server, KIT_URL its address.\n'kit help <command>' explains a command and its options.",
    );
  for (const { flags, description } of globalOptions) program.option(flags, description);
  settle(program, output);
  // The whole help fits a small terminal: the help of each command describes these options.
  program.configureHelp({ ...program.configureHelp(), visibleOptions: () => [] });
  for (const { title, commands } of chapters) {
    addEntries(program, commands, { output, runCommand, program });
    for (const { name } of commands)
      program.commands.find((command) => command.name() === name)?.helpGroup(title);
  }
  return program;
}

interface Surroundings {
  readonly output: Output;
  readonly runCommand: RunCommand;
  readonly program: Commander;
}

function addEntries(parent: Commander, entries: readonly AnyEntry[], around: Surroundings): void {
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  for (const entry of entries) {
    const command = parent.command(entry.name).description(entry.summary);
    settle(command, around.output);
    if (!("commands" in entry)) continue;
    command.addHelpText("after", () => examplesText(entry.examples, around.output));
    addEntries(command, entry.commands, around);
  }
  // Commander calls this once it knows which subcommand is meant, before it reads the rest of the line.
  parent.hook("preSubcommand", async (_, command) => {
    const entry = byName.get(command.name());
    if (entry && "load" in entry) fill(command, await entry.load(), around);
  });
}

/** Commands to copy are not wrapped, however narrow the terminal. */
function examplesText(lines: readonly string[], output: Output): string {
  return `\n${output.style("bold", "Examples:")}\n${lines.map((line) => `  ${line}`).join("\n")}`;
}

function fill(commander: Commander, command: Command, { output, runCommand, program }: Surroundings): void {
  for (const argument of command.arguments ?? []) commander.argument(argument.usage, argument.description);
  const attributes = Object.entries(command.options).map(([name, option]) => {
    const added = toCommanderOption(option);
    commander.addOption(added);
    return [name, added.attributeName()] as const;
  });
  if (command.details) commander.description(`${commander.description()}\n\n${command.details}`);
  commander.addHelpText("after", () => examplesText(command.examples, output));
  commander.action(async () => {
    const options = Object.fromEntries(
      attributes.map(([name, key]) => [name, commander.getOptionValue(key)]),
    );
    const { json = false, config, cwd, env } = program.opts<Partial<GlobalOptions>>();
    await runCommand(
      { json, config, cwd, env },
      { ...command, run: (context) => command.run({ args: commander.args, options }, context) },
    );
  });
}

function toCommanderOption(option: CommandOption<unknown>): Option {
  const { flags, description, parse, repeats } = option;
  const added = new Option(flags, description);
  if (!parse) return added;
  return added.argParser((text: string, before: unknown) => {
    const value = withName(added.long ?? flags, () => parse(text));
    return repeats && Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
  });
}

/** Names the option that an error is about. */
function withName<Value>(name: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    throw error instanceof KitError ? toNamedError(name, error) : error;
  }
}

function toNamedError(name: string, error: KitError): KitError {
  const { code, message, hint } = error;
  return new KitError({ code, message: `${name}: ${message}`, cause: error, hint });
}

/**
 * Settings of the program and of each command: the layout of help, and that commander neither exits nor prints by
 * itself.
 */
function settle(command: Commander, output: Output): void {
  command
    .helpCommand(false)
    .helpOption("-h, --help", "Explain this command")
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      visibleGlobalOptions: (subcommand) => globalOptionsOf(subcommand),
      styleTitle: (text) => output.style("bold", text),
      styleCommandText: (text) => output.style("cyan", text),
      styleSubcommandTerm: (text) => output.style("cyan", text),
      styleOptionTerm: (text) => output.style("cyan", text),
      subcommandTerm: (subcommand) => subcommand.name(),
    })
    .configureOutput({
      writeOut: (text) => output.write(text),
      // Help printed without a request is an answer too, so it goes to stdout.
      writeErr: (text) => output.write(text),
      outputError: () => {},
      getOutHelpWidth: () => Math.min(output.width, 100),
      getErrHelpWidth: () => Math.min(output.width, 100),
      getOutHasColors: () => true,
      getErrHasColors: () => true,
    });
}

/** Only kit itself has the option --version, not its commands. */
function globalOptionsOf(command: Commander): Option[] {
  const help = new Help();
  help.showGlobalOptions = true;
  return help.visibleGlobalOptions(command).filter((option) => option.long !== "--version");
}
