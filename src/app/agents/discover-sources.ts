import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** A file that defines an agent, a workflow or a webhook. */
export interface SourceFile {
  readonly kind: "agent" | "workflow" | "webhook";
  /** Path below its folder without extension, folders joined by dots: `team.reviewer`. */
  readonly name: string;
  /** Project-relative. */
  readonly path: string;
}

export interface SourceProblem {
  readonly path: string;
  readonly message: string;
  /** Set where the file would have been an agent, a workflow or a webhook of that name. */
  readonly source?: Pick<SourceFile, "kind" | "name">;
}

interface Layout {
  readonly kind: SourceFile["kind"];
  readonly folder: string;
  /** False where the folder holds other things too (`.agents/skills`). */
  readonly nested: boolean;
}

// In the order in which they win when two files have one name.
const layouts: readonly Layout[] = [
  { kind: "agent", folder: "src/agents", nested: true },
  { kind: "agent", folder: "agents", nested: true },
  { kind: "agent", folder: ".agents", nested: false },
  { kind: "agent", folder: ".kit/agents", nested: true },
  { kind: "workflow", folder: "src/workflows", nested: true },
  { kind: "workflow", folder: "workflows", nested: true },
  { kind: "workflow", folder: ".kit/workflows", nested: true },
  { kind: "webhook", folder: "src/webhooks", nested: true },
  { kind: "webhook", folder: ".kit/webhooks", nested: true },
];

const extension = /\.(ts|mts|js|mjs)$/;
const notSource = /\.(test|spec)\.(ts|mts|js|mjs)$|\.d\.(ts|mts)$/;
const sourceName = /^[\p{L}\p{N}][\p{L}\p{N}._-]*$/u;
/** Names are segments of addresses, which are limited in bytes. */
const maxNameBytes = 128;

/** Finds the agents, workflows and webhooks of a project. Files that start with `_` are helpers, tests are tests. */
export async function discoverSources(
  root: string,
): Promise<{ readonly sources: readonly SourceFile[]; readonly problems: readonly SourceProblem[] }> {
  const sources = new Map<string, SourceFile>();
  const problems: SourceProblem[] = [];
  for (const layout of layouts) {
    for (const path of await filesBelow(root, layout)) {
      const name = path
        .slice(layout.folder.length + 1)
        .replace(extension, "")
        .replaceAll("/", ".");
      const key = `${layout.kind} ${name}`;
      const first = sources.get(key);
      if (!sourceName.test(name) || Buffer.byteLength(name) > maxNameBytes)
        problems.push({
          path,
          message: `"${name}" cannot be a name: use letters, digits, . _ and -, at most 128.`,
        });
      else if (first !== undefined)
        problems.push({ path, message: `${first.path} has the name "${name}" already.` });
      else sources.set(key, { kind: layout.kind, name, path });
    }
  }
  return { sources: [...sources.values()], problems };
}

async function filesBelow(root: string, layout: Layout): Promise<readonly string[]> {
  const found: string[] = [];
  const folders = [layout.folder];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (entry.name.startsWith("_") || entry.name.startsWith(".")) continue;
      if (entry.isDirectory() && layout.nested) folders.push(`${folder}/${entry.name}`);
      if (entry.isFile() && extension.test(entry.name) && !notSource.test(entry.name))
        found.push(`${folder}/${entry.name}`);
    }
  }
  return found.sort();
}
