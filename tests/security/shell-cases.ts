import { z } from "zod";
import type { AgentPolicy } from "../../src/agents/define/agent-profile.ts";
import { type AnyCase, type Corpus, type Generated, generate, generated, readCorpus } from "./corpus.ts";

/**
 * Replaces lists of cases that were written for an earlier syntax: writing subcommands must now be named, and
 * interpreters must be marked as unsafe.
 */
export const namedToday: Readonly<Record<string, AgentPolicy>> = {
  "sh-s-094": { allowedCommands: ["git commit"], allowWrite: true },
  "sh-s-095": { allowedCommands: ["git commit"], allowWrite: true },
  "sh-s-096": { allowedCommands: ["git commit"], allowWrite: true },
  "sh-s-102": { allowedCommands: [{ command: "python", unsafe: true }] },
};

/** One command line under a policy, and the expected outcome. */
export interface ShellCase extends AnyCase {
  /** A case has this or `command_gen`. */
  readonly command?: string;
  readonly command_gen?: Generated;
  readonly policy: {
    readonly allow_shell?: boolean;
    readonly allowed_commands?: readonly string[];
    readonly allow_compound_commands?: boolean;
  };
  readonly expected: "allow" | "deny" | "allow_or_deny";
  /** One argument list, or one per command. */
  readonly expect_argv?: readonly string[] | readonly (readonly string[])[];
  /** The time limit of the decision. */
  readonly max_ms?: number;
  /** The shells in which the line is harmful; for readers only. */
  readonly fires_under?: readonly string[];
  /** For readers only. */
  readonly fixture_note?: string;
}

/** The files of the workspace of command lines, by path. */
export interface ShellFixture {
  readonly files: Readonly<Record<string, string>>;
  readonly executables: Readonly<Record<string, string>>;
  readonly outside: Readonly<Record<string, string>>;
}

const texts = z.array(z.string());
const files = z.record(z.string(), z.string());

export function readShellCases(): Corpus<{ readonly fixture: ShellFixture }, ShellCase> {
  return readCorpus("shell", {
    head: {
      fixture: z.strictObject({ files, executables: files, git: z.string(), outside: files }),
      generators: z.string(),
    },
    one: {
      command: z.string().optional(),
      command_gen: generated.optional(),
      policy: z
        .strictObject({
          allow_shell: z.boolean(),
          allowed_commands: texts,
          allow_compound_commands: z.boolean(),
        })
        .partial(),
      expected: z.enum(["allow", "deny", "allow_or_deny"]),
      expect_argv: z.union([texts, z.array(texts)]).optional(),
      max_ms: z.number().optional(),
      fires_under: texts.optional(),
      fixture_note: z.string().optional(),
    },
  });
}

export function commandOf({ id, command, command_gen }: ShellCase): string {
  if ((command === undefined) === (command_gen === undefined)) {
    throw new Error(`shell.json, case ${id}: it has one of command and command_gen.`);
  }
  return command ?? generate(command_gen ?? "");
}

/** The argument lists that a case expects to be run; `undefined` if it does not specify them. */
export function argvOf({ expect_argv }: ShellCase): readonly (readonly string[])[] | undefined {
  if (expect_argv === undefined) return undefined;
  return expect_argv.every((word) => typeof word === "string") ? [expect_argv] : (expect_argv as string[][]);
}
