import { faultOfDefinedName, nameKey, shownName } from "../../base/name-fault.ts";
import { toSentence } from "../../base/to-sentence.ts";
import { type FoundFiles, findFiles } from "../../files/find-files.ts";

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
  /** A model has written the file, or one that it imports, and no person has accepted it. */
  readonly isHeld?: boolean;
  /** It stops no work: the file is used all the same, or another one of its name is. */
  readonly isHarmless?: boolean;
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
  { kind: "agent", folder: ".agents/agents", nested: true },
  { kind: "agent", folder: ".kit/agents", nested: true },
  { kind: "workflow", folder: "src/workflows", nested: true },
  { kind: "workflow", folder: "workflows", nested: true },
  { kind: "workflow", folder: ".agents/workflows", nested: true },
  { kind: "workflow", folder: ".kit/workflows", nested: true },
  { kind: "webhook", folder: "src/webhooks", nested: true },
  { kind: "webhook", folder: ".kit/webhooks", nested: true },
];

const extension = /\.(ts|mts|js|mjs)$/;
const notSource = /\.(test|spec)\.(ts|mts|js|mjs)$|\.d\.(ts|mts)$/;

/**
 * Finds the agents, workflows and webhooks of a project. Files that start with `_` are helpers, tests are
 * tests; what else lies there and cannot be one is a problem.
 */
export async function discoverSources(
  root: string,
): Promise<{ readonly sources: readonly SourceFile[]; readonly problems: readonly SourceProblem[] }> {
  const sources = new Map<string, SourceFile>();
  const problems: SourceProblem[] = [];
  for (const layout of layouts) {
    const { paths, unusable } = await filesBelow(root, layout);
    problems.push(
      ...unusable.map(({ path, reason }) => ({ path, message: toSentence(`${path} ${reason}`) })),
    );
    for (const path of paths) {
      const name = path
        .slice(layout.folder.length + 1)
        .replace(extension, "")
        .replaceAll("/", ".");
      // Names are segments of addresses, in which a space is written otherwise.
      const fault = name.includes(" ") ? "must not hold spaces" : faultOfDefinedName(name);
      const key = `${layout.kind} ${nameKey(name)}`;
      const first = sources.get(key);
      if (fault !== undefined)
        problems.push({ path, message: `${shownName(name)} cannot be a name: it ${fault}.` });
      else if (first !== undefined)
        problems.push({
          path,
          message: `${first.path} has the name "${name}" already${first.name === name ? "" : ", in another case"}.`,
        });
      else sources.set(key, { kind: layout.kind, name, path });
    }
  }
  return { sources: [...sources.values()], problems };
}

async function filesBelow(root: string, { folder, nested }: Layout): Promise<FoundFiles> {
  const { paths, unusable } = await findFiles(root, folder, {
    nested,
    wants: (name) => extension.test(name) && !notSource.test(name),
    skips: (name) => name.startsWith("_") || name.startsWith("."),
  });
  // A file of that name is something else.
  const others = unusable.filter(({ path, reason }) => path !== folder || reason !== "is no folder");
  return { paths, unusable: others };
}
