import type { InputStream, Output } from "./print/output.ts";

/**
 * 0 or absent: it worked. 1: the work failed, such as a validation with errors. 2: wrong usage. `kit deploy` gives the code of
 * the platform's tool.
 */
export type ExitCode = number | undefined;

/** The input of a command besides its own arguments and options. */
export interface CommandContext {
  readonly output: Output;
  /** The stream that `-` reads, and that a person's answers come from. */
  readonly input: InputStream;
  /** Absolute: the folder that paths on the command line are relative to. `--cwd`, or where kit was started. */
  readonly cwd: string;
  /** Absolute: the project's folder. `--cwd`, or what `findRoot` says. */
  readonly root: string;
  /** `--config`, as written. */
  readonly configFile: string | undefined;
  /** `--env`, as written; false for `--no-env`. */
  readonly envFile: string | false | undefined;
  /** `--json`: the answer as JSON on stdout, and nothing else there. */
  readonly json: boolean;
  /** Aborted by the first Ctrl-C or SIGTERM. */
  readonly signal: AbortSignal;
  /** The system that kit runs on, as Node names it. */
  readonly platform: NodeJS.Platform;
}

/** The words that a shell can complete: these, or the names of the agents or workflows of the project. */
export type Completion = readonly string[] | "agent" | "workflow" | "agent or workflow";

/** Reads the value of an option; one that takes a few words only says which. */
export type Parse<Value> = ((text: string) => Value) & { readonly choices?: Completion };

/** One option of a command. `parse` throws a `KitError` that says what is wrong with the value. */
export interface CommandOption<Value> {
  /** As in the help: `--framework <name>`, `--all`. */
  readonly flags: string;
  readonly description: string;
  /** Absent for a switch, which is `true` when it is given. */
  readonly parse?: Parse<Value>;
  /** May be repeated; the values are joined. */
  readonly repeats?: true;
}

export type CommandOptions = Readonly<Record<string, CommandOption<unknown>>>;

export type OptionValues<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends CommandOption<infer Value>
    ? Value | undefined
    : never;
};

export interface CommandArgument {
  /** As in the help: `<id>`, `[paths...]`. */
  readonly usage: string;
  readonly description: string;
  readonly completes?: Completion;
}

export interface CommandInput<Options> {
  readonly args: readonly string[];
  readonly options: OptionValues<Options>;
}

/** The options of every command. */
export const globalOptions: readonly Pick<CommandOption<unknown>, "flags" | "description">[] = [
  { flags: "--json", description: "Print the answer as JSON" },
  { flags: "--config <file>", description: "Read this file instead of kit.config.ts or kit.toml" },
  { flags: "--cwd <dir>", description: "Work in this folder instead of the current one" },
  { flags: "--env <file>", description: "Read variables from this file of NAME=value lines, too" },
  { flags: "--no-env", description: "Read no .env; run and dev read that of the project otherwise" },
];

/** A command as data: how it is called, how it explains itself, and what it does. */
export interface Command<Options extends CommandOptions = CommandOptions> {
  /** In the order of the line: `<id>`, `[paths...]`. */
  readonly arguments?: readonly CommandArgument[];
  readonly options: Options;
  /** Whole command lines; the first shows the command at its plainest. */
  readonly examples: readonly string[];
  /** Details for the command's help that its summary leaves out. */
  readonly details?: string;
  /**
   * True for servers: after a signal the command ends when its work under way has. Other commands are ended after
   * some seconds.
   */
  readonly drains?: true;
  run(input: CommandInput<Options>, context: CommandContext): Promise<ExitCode>;
}

export function defineCommand<const Options extends CommandOptions>(
  command: Command<Options>,
): Command<Options> {
  return command;
}

/** An option without a value. */
export function flag(flags: string, description: string): CommandOption<boolean> {
  return { flags, description };
}

/** An option with a value. */
export function option<Value>(flags: string, description: string, parse: Parse<Value>): CommandOption<Value> {
  return { flags, description, parse };
}

/** An option that may be repeated, or given once with values separated by commas. */
export function listOption<Value>(
  flags: string,
  description: string,
  parse: Parse<Value>,
): CommandOption<readonly Value[]> {
  const parseList = (text: string): readonly Value[] =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map((part) => parse(part));
  const { choices } = parse;
  return {
    flags,
    description,
    parse: choices === undefined ? parseList : Object.assign(parseList, { choices }),
    repeats: true,
  };
}

/** A command's name and summary: all that kit's help needs. */
export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** Loads the command's code. */
  load(): Promise<Command>;
}

/** A group of commands on one subject: `kit specs …`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  /** Complete command lines. */
  readonly examples: readonly string[];
  readonly commands: readonly CommandEntry[];
}

export type AnyEntry = CommandEntry | CommandGroup;
