import type { GrepMatch } from "../../sandboxes/contract.ts";
import type { AnyTool, ToolDefinition } from "../tool.ts";
import { isSecret, secretRefusal } from "./secret-files.ts";
import { objectSchema, pathProperty, type ToolEnvironment } from "./tool-environment.ts";

interface GrepInput {
  readonly pattern: string;
  readonly path?: string;
  readonly glob?: string;
  readonly ignore_case?: boolean;
}

const maxMatches = 200;
const maxResults = 500;

export function createSearchTools(environment: ToolEnvironment): readonly AnyTool[] {
  const { sandbox } = environment;
  const grep: ToolDefinition<GrepInput> = {
    name: "grep",
    description: `Finds lines by a regular expression (RE2 syntax); at most ${maxMatches}, as path:line:text.`,
    input: objectSchema(
      {
        pattern: { type: "string", minLength: 1 },
        path: { ...pathProperty, description: "File or folder to search; default: the working folder." },
        glob: { type: "string", description: "Only files whose path matches, such as **/*.ts." },
        ignore_case: { type: "boolean" },
      },
      ["pattern"],
    ),
    idempotent: true,
    needsApproval: async ({ path = "." }) => environment.asks && (await isSecret(path, environment)),
    async execute(input, { signal, approved }) {
      const { path = "." } = input;
      if (approved !== true && (await isSecret(path, environment))) throw secretRefusal(path, environment);
      const { matches, truncated } = await (await sandbox()).grep({
        pattern: input.pattern,
        maxMatches,
        signal,
        ...(input.path === undefined ? {} : { path: input.path }),
        ...(input.glob === undefined ? {} : { glob: input.glob }),
        ...(input.ignore_case === undefined ? {} : { ignoreCase: input.ignore_case }),
      });
      const shown: GrepMatch[] = [];
      const secret = new Map<string, boolean>();
      for (const match of matches) {
        const known = secret.get(match.path) ?? (await isSecret(match.path, environment));
        secret.set(match.path, known);
        if (!known) shown.push(match);
      }
      if (shown.length === 0) return "No line matches.";
      const lines = shown.map((match) => `${match.path}:${match.line}:${match.text}`);
      if (truncated) lines.push(`[… more matches: narrow the pattern, path or glob …]`);
      return lines.join("\n");
    },
  };
  const glob: ToolDefinition<{ readonly pattern: string; readonly path?: string }> = {
    name: "glob",
    description: `Lists files by a glob, such as src/**/*.ts; at most ${maxResults}.`,
    input: objectSchema(
      {
        pattern: { type: "string", minLength: 1 },
        path: { ...pathProperty, description: "Folder to look in; default: the working folder." },
      },
      ["pattern"],
    ),
    idempotent: true,
    async execute({ pattern, path }, { signal }) {
      const { paths, truncated } = await (await sandbox()).glob(pattern, {
        maxResults,
        signal,
        ...(path === undefined ? {} : { path }),
      });
      if (paths.length === 0) return "No file matches.";
      return truncated ? `${paths.join("\n")}\n[… more files: narrow the pattern …]` : paths.join("\n");
    },
  };
  return [grep, glob];
}
