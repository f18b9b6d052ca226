import { KitError } from "../../base/kit-error.ts";
import { isProtectedPath } from "../policy/protected-paths.ts";
import type { AnyTool, ToolDefinition } from "../tool.ts";
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
  const { sandbox, projectRoot } = environment;
  const open = async (path: string, removes = false): ReturnType<typeof sandbox> => {
    const files = await sandbox();
    const granted = environment.policy.allowProtectedPaths ?? [];
    // A link of the workspace may lead to what its name does not say. Removing takes the link itself.
    const target = await files.resolve(path, { keepLink: removes });
    const change = { removes, projectRoot, hostRoot: files.hostRoot };
    if (
      isProtectedPath({ ...change, cwd: files.cwd, path }, granted) ||
      isProtectedPath({ ...change, cwd: "", path: target }, granted)
    ) {
      throw new KitError({
        code: "forbidden",
        message: `${path} is protected: kit's own files, agents, configuration and Git hooks are not for models to change.`,
      });
    }
    return files;
  };
  const write: ToolDefinition<{ readonly path: string; readonly content: string }> = {
    name: "write",
    description: "Writes a text file, replacing it if it exists; missing folders are created.",
    input: objectSchema({ path: pathProperty, content: textProperty }, ["path", "content"]),
    exclusive: true,
    touches: ({ path }) => [path],
    async execute({ path, content }) {
      await (await open(path)).writeFile(path, content);
      return `Wrote ${content.length} characters to ${path}.`;
    },
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
    async execute(input) {
      const { replacements } = await (await open(input.path)).edit(input.path, input);
      return `Replaced ${replacements} ${replacements === 1 ? "place" : "places"} in ${input.path}.`;
    },
  };
  const mkdir: ToolDefinition<{ readonly path: string }> = {
    name: "mkdir",
    description: "Creates a folder, with those above it.",
    input: objectSchema({ path: pathProperty }, ["path"]),
    exclusive: true,
    async execute({ path }) {
      await (await open(path)).mkdir(path);
      return `Created ${path}.`;
    },
  };
  const rm: ToolDefinition<{ readonly path: string; readonly recursive?: boolean }> = {
    name: "rm",
    description: "Removes a file, or with `recursive` a folder and all in it.",
    input: objectSchema({ path: pathProperty, recursive: { type: "boolean" } }, ["path"]),
    exclusive: true,
    async execute({ path, recursive }) {
      await (await open(path, true)).rm(path, recursive === undefined ? {} : { recursive });
      return `Removed ${path}.`;
    },
  };
  return [write, edit, mkdir, rm];
}
