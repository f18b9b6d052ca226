import { KitError } from "../../base/kit-error.ts";
import { readFileInside, type WritableRoot, writeFileInside } from "./write-file.ts";

/**
 * The file of acceptances, in the root of the project. It belongs into Git: an acceptance holds for
 * everybody.
 *
 * @see decisions/2026-11-21-accepted-specs.md
 */
export const acceptancesFile = "kit.accepted.jsonl";

/** Somebody said that a block still holds, with a file it names as it was then. */
export interface Acceptance {
  /** Of the block. */
  readonly id: string;
  /** The file that the block names, project-relative. */
  readonly path: string;
  /** `contentHash` of that file. */
  readonly hash: string;
  /** ISO 8601. */
  readonly at: string;
}

export interface AcceptanceFile {
  /** The bytes as read; null where there is no file. */
  readonly bytes: Uint8Array | null;
  readonly acceptances: readonly Acceptance[];
  /** 1-based lines that are no acceptance, such as those of a merge conflict. */
  readonly unreadableLines: readonly number[];
}

/** Reads the acceptances: one JSON object per line, in any order, repeated ones included. */
export async function readAcceptances(root: string): Promise<AcceptanceFile> {
  const bytes = (await readFileInside(root, { path: acceptancesFile })) ?? null;
  const acceptances: Acceptance[] = [];
  const unreadableLines: number[] = [];
  const text = bytes === null ? "" : new TextDecoder().decode(bytes);
  for (const [index, line] of text.split("\n").entries()) {
    if (line.trim() === "") continue;
    const acceptance = parseAcceptance(line);
    if (acceptance === undefined) unreadableLines.push(index + 1);
    else acceptances.push(acceptance);
  }
  return { bytes, acceptances, unreadableLines };
}

/**
 * Adds acceptances, each in the place of an earlier one of the same block and file, and drops those
 * that `isKept` refuses. Writes nothing where nothing changes.
 *
 * Throws `conflict` for a file with lines that are no acceptance, because writing would lose them.
 */
export async function writeAcceptances(
  target: WritableRoot,
  changes: { readonly added: readonly Acceptance[]; readonly isKept: (acceptance: Acceptance) => boolean },
): Promise<void> {
  const { bytes, acceptances, unreadableLines } = await readAcceptances(target.root);
  const [line] = unreadableLines;
  if (line !== undefined) {
    throw new KitError({
      code: "conflict",
      message: `${acceptancesFile}, line ${line}, is no acceptance; nothing was written.`,
      hint: "Resolve the merge conflict there, or remove the line.",
    });
  }
  const entries = new Map<string, Acceptance>();
  const keyOf = ({ id, path }: Acceptance): string => `${id}\n${path}`;
  for (const acceptance of acceptances.filter(changes.isKept)) {
    const known = entries.get(keyOf(acceptance));
    if (known === undefined || known.at <= acceptance.at) entries.set(keyOf(acceptance), acceptance);
  }
  // The clock of whoever accepted before may be ahead of ours, so what is new wins whatever its time.
  for (const acceptance of changes.added) entries.set(keyOf(acceptance), acceptance);
  // Sorted, one per line, and without a comma in between: two branches merge without a conflict.
  const lines = [...entries].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => JSON.stringify(entry));
  const content = lines.map((line) => `${line}\n`).join("");
  if (bytes !== null && content === new TextDecoder().decode(bytes)) return;
  await writeFileInside(target, { path: acceptancesFile, content, expected: bytes });
}

function parseAcceptance(line: string): Acceptance | undefined {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== "object" || value === null) return undefined;
    const { id, path, hash, at }: Partial<Record<keyof Acceptance, unknown>> = value;
    if (typeof id !== "string" || typeof path !== "string" || typeof hash !== "string") return undefined;
    return typeof at === "string" ? { id, path, hash, at } : undefined;
  } catch {
    return undefined;
  }
}
