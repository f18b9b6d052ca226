import type { GrepMatch } from "../../sandboxes/contract.ts";
import type { AnyTool, ToolDefinition } from "../define/tool.ts";
import {
  isSecret,
  objectSchema,
  pathProperty,
  secretRefusal,
  type ToolEnvironment,
} from "./tool-environment.ts";

interface ReadInput {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

const defaultLineLimit = 2_000;
const maxLineLength = 2_000;

export function createReadTools(environment: ToolEnvironment): readonly AnyTool[] {
  const { sandbox } = environment;
  const read: ToolDefinition<ReadInput> = {
    name: "read",
    description: "Reads a text file, each line with its number; for a folder, lists its entries.",
    input: objectSchema(
      {
        path: pathProperty,
        offset: { type: "integer", minimum: 1, description: "First line; default 1." },
        limit: { type: "integer", minimum: 1, description: `Lines to read; default ${defaultLineLimit}.` },
      },
      ["path"],
    ),
    idempotent: true,
    touches: (input) => [input.path],
    needsApproval: async ({ path }) => environment.canAskPerson && (await isSecret(path, environment)),
    async execute(input, context) {
      const files = await sandbox();
      if (context.approved !== true && (await isSecret(input.path, environment)))
        throw secretRefusal(input.path, environment);
      const { kind, size } = await files.stat(input.path);
      if (kind === "directory") {
        const entries = await files.list(input.path);
        return (
          entries.map((entry) => (entry.kind === "directory" ? `${entry.name}/` : entry.name)).join("\n") ||
          "(empty folder)"
        );
      }
      const text = await files.readFile(input.path);
      // By the rule of Git; the beginning tells.
      if (text.slice(0, 8_000).includes("\0")) return `A binary file of ${size} bytes.`;
      const content = numbered(text, input);
      const shows = await environment.sourceAt?.(await files.resolve(input.path), content);
      return shows === undefined || shows.length === 0 ? content : { content, shows };
    },
  };
  const stat: ToolDefinition<{ readonly path: string }> = {
    name: "stat",
    description: "Tells kind, size in bytes and time of the last change of a path.",
    input: objectSchema({ path: pathProperty }, ["path"]),
    idempotent: true,
    execute: async ({ path }) => JSON.stringify(await (await sandbox()).stat(path)),
  };
  const exists: ToolDefinition<{ readonly path: string }> = {
    name: "exists",
    description: "Tells whether a path exists.",
    input: objectSchema({ path: pathProperty }, ["path"]),
    idempotent: true,
    execute: async ({ path }) => String(await (await sandbox()).exists(path)),
  };
  return [read, stat, exists];
}

function numbered(text: string, input: ReadInput): string {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  const first = input.offset ?? 1;
  const last = Math.min(lines.length, first - 1 + (input.limit ?? defaultLineLimit));
  const shown: string[] = [];
  for (let line = first; line <= last; line += 1) {
    const content = lines[line - 1] ?? "";
    const cut =
      content.length > maxLineLength
        ? `${content.slice(0, maxLineLength)} [… ${content.length - maxLineLength} characters cut]`
        : content;
    shown.push(`${line}\t${cut}`);
  }
  if (lines.length === 0) return "(empty file)";
  if (shown.length === 0) return `The file has ${lines.length} lines; there is none from ${first} on.`;
  if (last < lines.length)
    shown.push(`[… lines ${last + 1} to ${lines.length} not shown; read on with offset ${last + 1} …]`);
  return shown.join("\n");
}

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
    needsApproval: async ({ path = "." }) => environment.canAskPerson && (await isSecret(path, environment)),
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
