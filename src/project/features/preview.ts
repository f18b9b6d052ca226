import { createHash } from "node:crypto";
import { KitError } from "../../base/kit-error.ts";
import type { FileChange, SyncEntry } from "../../protocol/sync.ts";

/** A change as its preview shows it. */
type ShownChange = Omit<FileChange, "digest"> & { readonly losses?: SyncEntry["losses"] | undefined };

/**
 * Names what a preview shows of a file: what is there, what is to be there, and what is lost. Nothing is written to an
 * unchanged file, so its text does not count.
 */
export function digestOfChange({ path, action, before, after, losses = [] }: ShownChange): string {
  const texts = action === "unchanged" ? [] : [before ?? null, after ?? null, losses];
  return createHash("sha256")
    .update(JSON.stringify([path, action, ...texts]))
    .digest("hex")
    .slice(0, 32);
}

/** Throws `conflict`, with the files as `meta.files`, where a change is another one than the preview showed. */
export function assertAsPreviewed(
  changes: readonly FileChange[],
  expected: readonly Pick<FileChange, "path" | "digest">[],
): void {
  const previewed = new Map(expected.map(({ path, digest }) => [path, digest]));
  const planned = new Map(changes.map(({ path, digest }) => [path, digest]));
  const files = [...new Set([...planned.keys(), ...previewed.keys()])].filter(
    (path) => planned.get(path) !== previewed.get(path),
  );
  if (files.length === 0) return;
  const names = files.length > 5 ? [...files.slice(0, 5), `${files.length - 5} more`] : files;
  const [isAre, them] = files.length === 1 ? ["is", "it"] : ["are", "them"];
  throw new KitError({
    code: "conflict",
    message: `${names.join(", ")} ${isAre} not as the preview showed ${them} any more, so nothing was written.`,
    hint: "Look at a new preview, and write that one.",
    meta: { files },
  });
}
