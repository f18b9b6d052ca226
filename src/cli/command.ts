import type { InputStream, Output } from "./print/output.ts";

/**
 * 0: it worked. 1: the work failed, such as a validation with errors. 2: wrong usage. `kit deploy` gives the code of the
 * platform's tool.
 */
export type ExitCode = number;

/** The surroundings of a command, besides its own arguments and options. */
export interface CommandContext {
  readonly output: Output;
  /** The stream that `-` stands for in place of a text, and that a person's answers come from. */
  readonly input: InputStream;
  /** Absolute: what paths on the line are relative to. `--cwd`, or where kit was started. */
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

/** One option of a command. `parse` throws a `KitError` that says what is wrong with the value. */
export interface CommandOption<Value> {
  /** As in the help: `--framework <name>`, `--all`. */
  readonly flags: string;
  readonly description: string;
  /** Absent for a switch, which is `true` when it is given. */
  readonly parse?: (text: string) => Value;
  /** May be given several times; the values are joined. */
  readonly repeats?: true;
}

export type CommandOptions = Readonly<Record<string, CommandOption<unknown>>>;

export type OptionValues<Options> = {
  readonly [Name in keyof Options]: Options[Name] extends CommandOption<infer Value>
    ? Value | undefined
    : never;
};

export interface CommandInput<Options> {
  readonly args: readonly string[];
  readonly options: OptionValues<Options>;
}

/** A command as data: how it is called, how it explains itself, and what it does. */
export interface Command<Options extends CommandOptions = CommandOptions> {
  /** In the order of the line: `<id>`, `[paths...]`. */
  readonly arguments?: readonly { readonly usage: string; readonly description: string }[];
  readonly options: Options;
  /** Whole command lines; the first shows the command at its plainest. */
  readonly examples: readonly string[];
  /** Details that the line of the command table leaves out. */
  readonly details?: string;
  /** After a signal it ends when what is under way has: a server. Others are cut off after some seconds. */
  readonly drains?: true;
  run(input: CommandInput<Options>, context: CommandContext): Promise<ExitCode>;
}

export function defineCommand<const Options extends CommandOptions>(
  command: Command<Options>,
): Command<Options> {
  return command;
}

/** A switch: given or not. */
export function flag(flags: string, description: string): CommandOption<boolean> {
  return { flags, description };
}

/** An option with a value. */
export function option<Value>(
  flags: string,
  description: string,
  parse: (text: string) => Value,
): CommandOption<Value> {
  return { flags, description, parse };
}

/** An option that may be given several times, or once with commas. */
export function listOption<Value>(
  flags: string,
  description: string,
  parse: (text: string) => Value,
): CommandOption<readonly Value[]> {
  const parseList = (text: string): readonly Value[] =>
    text
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map(parse);
  return { flags, description, parse: parseList, repeats: true };
}
