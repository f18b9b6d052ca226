import { KitError } from "../../base/kit-error.ts";
import type { Sandbox } from "../../sandboxes/contract.ts";
import type { AnyTool, ToolContext, ToolDefinition } from "../define/tool.ts";
import { isProtectedPath } from "../policy/protected-paths.ts";
import { objectSchema, pathProperty, type ToolEnvironment } from "./tool-environment.ts";

interface EditInput {
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

const textProperty = { type: "string" } as const;

/** Tools that change files. They run one at a time within a turn, so that reads see what was written. */
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
    // Recorded before the write: the process may end in between.
    const ended = file === undefined ? undefined : sources?.begin(writer(tool));
    const said = await work(files).finally(ended);
    if (file === undefined || tool === "mkdir") return said;
    if (isProtected) sources?.accepted(file);
    else sources?.wrote(file, writer(tool));
    return said;
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
          await files.writeFile(path, content);
          return `Wrote ${content.length} characters to ${path}.`;
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

interface Target {
  readonly files: Sandbox;
  /** On this machine; undefined in a workspace that is the session's own. */
  readonly file: string | undefined;
  readonly isProtected: boolean;
}

/** A link of the workspace may lead to what its name does not say. Removing takes the link itself. */
async function findTarget(
  path: string,
  { sandbox, policy, projectRoot, sources }: ToolEnvironment,
  removes = false,
): Promise<Target> {
  const files = await sandbox();
  const { hostRoot, cwd } = files;
  const granted = policy.allowProtectedPaths ?? [];
  const target = await files.resolve(path, { keepLink: removes });
  const change = { removes, projectRoot, hostRoot, isLoaded: sources?.isLoaded.bind(sources) };
  return {
    files,
    file: hostRoot === undefined ? undefined : `${hostRoot}/${target}`,
    isProtected:
      isProtectedPath({ ...change, cwd, path }, granted) ||
      isProtectedPath({ ...change, cwd: "", path: target }, granted),
  };
}

function refusal(path: string, { canAskPerson }: ToolEnvironment): KitError {
  const otherwise = canAskPerson ? "" : "; with `approvals`, a person is asked";
  return new KitError({
    code: "forbidden",
    message: `${path} is protected: what decides how kit, its agents, Git, CI and package managers behave is not for models to change. A person may change it, or grant it in allowProtectedPaths${otherwise}.`,
  });
}
