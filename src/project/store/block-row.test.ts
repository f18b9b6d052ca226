import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { lifecycles } from "../../protocol/enums.ts";
import type { DraftId, SpecDraft } from "../../specs/adapter.ts";
import { assignIds, toId } from "../../specs/model/assemble-blocks.ts";
import type { Connection } from "../../sqlite/statements.ts";
import { rounds } from "../../testing/campaign.suite.ts";
import { testFolder } from "../../testing/test-folder.ts";
import { classIdOf, type IdKind, keyRangeOf, keysOfId, toBlockEntry, toKey, weightOf } from "./block-row.ts";
import { type FileEntry, type IndexBatch, writeBatch } from "./index-writer.ts";
import { openIndex, readMeta } from "./open-index.ts";

test("the keys of a class are one range", () => {
  expect(classIdOf(toKey(3, 7))).toBe(3);
  expect(keyRangeOf(3)).toEqual([BigInt(toKey(3, 0)), BigInt(toKey(4, 0)) - 1n]);
  expect(Number.isSafeInteger(toKey(10_000, 2 ** 32 - 1))).toBe(true);
});

test.each([
  ["critical", [1, 0.5, 0.2, 0]],
  ["high", [0.8, 0.4, 0.16, 0]],
  ["medium", [0.5, 0.25, 0.1, 0]],
  ["low", [0.3, 0.15, 0.06, 0]],
] as const)("a %s block that is active, deprecated, legacy or obsolete weighs %j", (priority, weights) => {
  const found = lifecycles.map((lifecycle) => weightOf({ lifecycle, priority }));
  for (const [index, weight] of weights.entries()) expect(found[index]).toBeCloseTo(weight, 9);
});

const draft = (id: DraftId): SpecDraft => ({
  id,
  framework: "custom",
  spec_type: "task",
  title: "t",
  content: "c",
  tags: [],
  lifecycle: "active",
  priority: "medium",
  metadata: {},
  span: { start_line: 1, end_line: 1 },
  links: [],
  mentions: [],
});

type Files = ReadonlyMap<string, readonly DraftId[]>;

function entryOf(path: string, ids: readonly DraftId[]): FileEntry {
  const blocks = ids.map((id) => toBlockEntry(draft(id)));
  return {
    path,
    hash: "",
    aliases: "",
    guidelines: "",
    guidelineCount: 0,
    diagnostics: "",
    blocks,
    features: [],
  };
}

function write(database: Connection, batch: Pick<IndexBatch, "files" | "removedFiles">): void {
  const generation = readMeta(database, "generation") ?? 0;
  expect(writeBatch(database, { ...batch, generation, isVisible: true }).kind).toBe("written");
}

/** The order of SQLite for texts, which is that of code points. */
function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Ids in path, then position order. */
function idsIn(database: Connection): string[] {
  return database
    .all<[IdKind, string, number]>(
      "SELECT b.id_kind, b.base, b.n FROM blocks b JOIN files f ON f.id = b.file ORDER BY f.path, b.position",
    )
    .map(([kind, base, n]) => toId(kind, base, n));
}

function assigned(files: Files): readonly string[] {
  const requests = [...files]
    .sort(([a], [b]) => comparePaths(a, b))
    .flatMap(([path, ids]) => ids.map((id) => ({ id, path, line: 1 })));
  return assignIds(requests).ids;
}

// Few names, some of which look like what another one may become.
const name = fc.constantFrom("a", "a-2", "a-3", "a-2-2", "b", "a-02", "b-2");
const draftId: fc.Arbitrary<DraftId> = fc.oneof(
  { weight: 4, arbitrary: name.map((value): DraftId => ({ kind: "base", value })) },
  { weight: 1, arbitrary: name.map((value): DraftId => ({ kind: "declared", value })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("s-", "t").map((prefix): DraftId => ({ kind: "sequence", prefix })),
  },
);
const path = fc.constantFrom("a.md", "b/a.md", "b.md", "b-c.md", "é.md", "\ue000.md", "😀.md");
const content = fc.array(draftId, { maxLength: 5 });

test("ids kept group by group are those given to the whole project, after any changes", () => {
  const folder = testFolder(onTestFinished);
  let count = 0;
  fc.assert(
    fc.property(
      fc.array(fc.tuple(path, content), { maxLength: 6 }),
      fc.array(fc.tuple(path, fc.option(content)), { maxLength: 8 }),
      (first, changes) => {
        const files = new Map(first);
        const { database } = openIndex(join(folder, `${count++}.db`), "");
        write(database, { files: [...files].map(([each, ids]) => entryOf(each, ids)) });
        expect(idsIn(database)).toEqual(assigned(files));
        for (const [changed, ids] of changes) {
          if (ids === null) {
            files.delete(changed);
            write(database, { removedFiles: [changed] });
          } else {
            files.set(changed, ids);
            write(database, { files: [entryOf(changed, ids)] });
          }
          expect(idsIn(database)).toEqual(assigned(files));
        }
        for (const id of new Set(assigned(files))) expect(keysOfId(database, id)).not.toEqual([]);
        database.close();
      },
    ),
    { numRuns: rounds(20, 100) },
  );
});
