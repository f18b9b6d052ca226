import type { ChangedSpec } from "../../protocol/spec-query.ts";
import type { SpecDraft } from "../../specs/adapter.ts";
import { toId } from "../../specs/model/assemble-blocks.ts";
import type { ProjectIndex } from "../project-index.ts";
import type { SourceCatalog } from "../scan/source-catalog.ts";
import type { IdKind } from "../store/block-row.ts";

interface CompareOptions {
  /** The earlier text of the file. */
  readonly before: string;
  readonly index: Pick<ProjectIndex, "read" | "readText">;
  readonly catalog: Pick<SourceCatalog, "specAdapterFor">;
}

/** The blocks of a file that differ from those of an earlier text, in their order, then the removed ones. */
export function compareSpecs(
  path: string,
  { before, index, catalog }: CompareOptions,
): readonly ChangedSpec[] | undefined {
  const adapter = catalog.specAdapterFor(path);
  const text = index.readText(path);
  if (adapter === undefined || text === undefined) return undefined;
  const ids = index.read((database) =>
    database.all<[kind: IdKind, base: string, n: number]>(
      `SELECT b.id_kind, b.base, b.n FROM files f JOIN blocks b ON b.file = f.id WHERE f.path = ? ORDER BY b.position`,
      path,
    ),
  );
  const now = adapter.parse({ path, text }).drafts;
  // The file has changed since it was indexed.
  if (now.length !== ids.length) return undefined;
  const old = new Map(namedDrafts(adapter.parse({ path, text: before }).drafts));
  const changed: ChangedSpec[] = [];
  for (const [position, [name, draft]] of namedDrafts(now).entries()) {
    const earlier = old.get(name);
    old.delete(name);
    const what = earlier === undefined ? [] : differences(earlier, draft);
    if (earlier !== undefined && what.length === 0) continue;
    const [kind, base, n] = ids[position] ?? ["base", name, 1];
    changed.push({
      id: toId(kind, base, n),
      path,
      change: earlier === undefined ? "added" : "modified",
      what,
    });
  }
  for (const { id } of old.values())
    changed.push({ id: id.kind === "sequence" ? id.prefix : id.value, path, change: "removed", what: [] });
  return changed;
}

/** Each draft with a name that it keeps when others come and go. */
function namedDrafts(drafts: readonly SpecDraft[]): (readonly [name: string, SpecDraft])[] {
  const counts = new Map<string, number>();
  return drafts.map((draft) => {
    const { id, content } = draft;
    // The number of a sequence counts over the whole project.
    const name = id.kind === "sequence" ? `${id.prefix}${content}` : id.value;
    const n = (counts.get(name) ?? 0) + 1;
    counts.set(name, n);
    return [`${name} ${n}`, draft];
  });
}

function differences(before: SpecDraft, now: SpecDraft): string[] {
  const from = (name: "lifecycle" | "priority" | "spec_type"): string[] =>
    before[name] === now[name] ? [] : [`${name.replace("spec_", "")} ${before[name]} → ${now[name]}`];
  const [oldStatus, status] = [before.metadata.status, now.metadata.status];
  return [
    ...(oldStatus === status ? [] : [`status ${words(oldStatus)} → ${words(status)}`]),
    ...from("lifecycle"),
    ...from("priority"),
    ...from("spec_type"),
    ...(before.title === now.title && before.content === now.content ? [] : ["text"]),
    ...(criteriaIn(before) === criteriaIn(now) ? [] : ["criteria"]),
    ...(before.tags.join("\n") === now.tags.join("\n") ? [] : ["tags"]),
  ];
}

function words(status: string | undefined): string {
  return status?.replace("_", " ") ?? "none";
}

/** Without their lines, which move with the text above. */
function criteriaIn({ metadata }: SpecDraft): string {
  return JSON.stringify(metadata.ears_patterns?.map(({ number, text }) => [number, text]));
}
