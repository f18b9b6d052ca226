import { KitError } from "../../base/kit-error.ts";
import type { GrepMatch, Sandbox } from "../../sandboxes/contract.ts";
import type { AnyTool, ToolContext, ToolDefinition } from "../define/tool.ts";
import { isProtectedPath } from "../policy/protected-paths.ts";
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
      // Like Git, judge by the beginning of the file.
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
  const printed: string[] = [];
  for (let line = first; line <= last; line += 1) {
    const content = lines[line - 1] ?? "";
    const cut =
      content.length > maxLineLength
        ? `${content.slice(0, maxLineLength)} [… ${content.length - maxLineLength} characters cut]`
        : content;
    printed.push(`${line}\t${cut}`);
  }
  if (lines.length === 0) return "(empty file)";
  if (printed.length === 0) return `The file has ${lines.length} lines; there is none from ${first} on.`;
  if (last < lines.length)
    printed.push(`[… lines ${last + 1} to ${lines.length} not shown; read on with offset ${last + 1} …]`);
  return printed.join("\n");
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
        path: input.path,
        glob: input.glob,
        ignoreCase: input.ignore_case,
      });
      const printed: GrepMatch[] = [];
      const secret = new Map<string, boolean>();
      for (const match of matches) {
        const known = secret.get(match.path) ?? (await isSecret(match.path, environment));
        secret.set(match.path, known);
        if (!known) printed.push(match);
      }
      if (printed.length === 0) return "No line matches.";
      const lines = printed.map((match) => `${match.path}:${match.line}:${match.text}`);
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
        path,
      });
      if (paths.length === 0) return "No file matches.";
      return truncated ? `${paths.join("\n")}\n[… more files: narrow the pattern …]` : paths.join("\n");
    },
  };
  return [grep, glob];
}

interface EditInput {
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

const textProperty = { type: "string" } as const;

/** Tools that change files. They run one at a time within a turn, so that reads see earlier writes. */
export function createWriteTools(environment: ToolEnvironment): readonly AnyTool[] {
  const { sandbox, sources, writer } = environment;
  const needsApproval = async ({ path }: { readonly path: string }): Promise<boolean> =>
    environment.canAskPerson && (await findTarget(path, environment)).isProtected;
  /** Changes a file that is not protected, or whose change a person approved. */
  const change = async (
    path: string,
    {
      tool,
      context,
      work,
    }: {
      readonly tool: "write" | "edit" | "mkdir";
      readonly context: ToolContext;
      readonly work: (files: Sandbox) => Promise<string>;
    },
  ): Promise<string> => {
    const { files, file, isProtected } = await findTarget(path, environment);
    if (isProtected && context.approved !== true) throw refusal(path, environment);
    // Record the change before the write: the process may end in between.
    const ended = file === undefined ? undefined : sources?.begin(writer(tool));
    const output = await work(files).finally(ended);
    if (file === undefined || tool === "mkdir") return output;
    if (isProtected) sources?.accepted(file);
    else sources?.wrote(file, writer(tool));
    return output;
  };
  const write: ToolDefinition<{ readonly path: string; readonly content: string }> = {
    name: "write",
    description: "Writes a text file, replacing it if it exists; missing folders are created.",
    input: objectSchema({ path: pathProperty, content: textProperty }, ["path", "content"]),
    exclusive: true,
    touches: ({ path }) => [path],
    needsApproval,
    execute: ({ path, content }, context) =>
      change(path, {
        tool: "write",
        context,
        work: async (files) => {
          const replaced = await countLines(files, path);
          await files.writeFile(path, content);
          return `Wrote ${content.length} characters to ${path}${replaced}.`;
        },
      }),
  };
  const edit: ToolDefinition<EditInput> = {
    name: "edit",
    description: "Replaces a text in a file. `old` must occur exactly once, unless `all` is true.",
    input: objectSchema(
      {
        path: pathProperty,
        old: { type: "string", minLength: 1 },
        new: textProperty,
        all: { type: "boolean" },
      },
      ["path", "old", "new"],
    ),
    exclusive: true,
    touches: ({ path }) => [path],
    needsApproval,
    execute: (input, context) =>
      change(input.path, {
        tool: "edit",
        context,
        work: async (files) => {
          const { replacements } = await files.edit(input.path, input);
          return `Replaced ${replacements} ${replacements === 1 ? "place" : "places"} in ${input.path}.`;
        },
      }),
  };
  const mkdir: ToolDefinition<{ readonly path: string }> = {
    name: "mkdir",
    description: "Creates a folder, with those above it.",
    input: objectSchema({ path: pathProperty }, ["path"]),
    exclusive: true,
    needsApproval,
    execute: ({ path }, context) =>
      change(path, {
        tool: "mkdir",
        context,
        work: async (files) => {
          await files.mkdir(path);
          return `Created ${path}.`;
        },
      }),
  };
  const rm: ToolDefinition<{ readonly path: string; readonly recursive?: boolean }> = {
    name: "rm",
    description: "Removes a file, or with `recursive` a folder and all in it.",
    input: objectSchema({ path: pathProperty, recursive: { type: "boolean" } }, ["path"]),
    exclusive: true,
    needsApproval: async ({ path }) =>
      environment.canAskPerson && (await findTarget(path, environment, true)).isProtected,
    async execute({ path, recursive }, context) {
      const { isProtected } = await findTarget(path, environment, true);
      if (isProtected && context.approved !== true) throw refusal(path, environment);
      await (await sandbox()).rm(path, recursive === undefined ? {} : { recursive });
      return `Removed ${path}.`;
    },
  };
  return [write, edit, mkdir, rm];
}

/** Says how many lines a write replaces, because its arguments do not. */
async function countLines(files: Sandbox, path: string): Promise<string> {
  const before = await files.readFile(path).catch(() => "");
  const lines = before === "" ? 0 : before.split("\n").length - (before.endsWith("\n") ? 1 : 0);
  return lines === 0 ? "" : `, replacing ${lines} ${lines === 1 ? "line" : "lines"}`;
}

interface Target {
  readonly files: Sandbox;
  /** Absolute path on this machine; `undefined` if the workspace belongs to the session alone. */
  readonly file: string | undefined;
  readonly isProtected: boolean;
}

/** Resolves links first, because a link can point to a protected path. Removing affects the link itself. */
async function findTarget(
  path: string,
  { sandbox, policy, projectRoot, sources }: ToolEnvironment,
  removes = false,
): Promise<Target> {
  const files = await sandbox();
  const { hostRoot, cwd } = files;
  const granted = policy.allowProtectedPaths ?? [];
  const target = await files.resolve(path, { keepLink: removes });
  const base = { projectRoot, hostRoot, isLoaded: sources?.isLoaded.bind(sources) };
  // Only tools that change files need this.
  const { findPartOfRepository } = await import("./repository-parts.ts");
  const isOne = (place: string, inFolder: string, isRemoved: boolean): boolean =>
    isProtectedPath({ ...base, path: place, cwd: inFolder, removes: isRemoved }, granted);
  return {
    files,
    file: hostRoot === undefined ? undefined : `${hostRoot}/${target}`,
    isProtected:
      isOne(path, cwd, removes) ||
      isOne(target, "", removes) ||
      (removes
        ? await hasProtected(target, { files, granted, isOne })
        : (await findPartOfRepository([target], granted, files)) !== undefined),
  };
}

/** Whether protected files, or more than kit looks at, would go with a folder. A link goes alone. */
async function hasProtected(
  target: string,
  {
    files,
    granted,
    isOne,
  }: {
    readonly files: Sandbox;
    readonly granted: readonly string[];
    readonly isOne: (path: string, folder: string, isRemoved: boolean) => boolean;
  },
): Promise<boolean> {
  const { toView } = await import("./command-context.ts");
  const { faultOfTree } = await import("./protected-below.ts");
  if ((await files.resolve(toView(target, files)).catch(() => undefined)) !== target) return false;
  const isProtected = (path: string, isRemoved: boolean): boolean => isOne(path, "", isRemoved);
  const fault = await faultOfTree({ source: target, removes: true, granted, isProtected }, files);
  return fault !== undefined;
}

function refusal(path: string, { canAskPerson }: ToolEnvironment): KitError {
  const otherwise = canAskPerson ? "" : "; with `approvals`, a person is asked";
  return new KitError({
    code: "forbidden",
    message: `${path} is protected: what decides how kit, its agents, Git, CI and package managers behave is not for models to change. A person may change it, or grant it in allowProtectedPaths${otherwise}.`,
  });
}
