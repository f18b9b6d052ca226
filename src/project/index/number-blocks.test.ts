import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { DraftId, SpecDraft } from "../../specs/adapter.ts";
import { assignIds } from "../../specs/assign-ids.ts";
import { toBlockEntry } from "../read/block-entry.ts";
import { keysOfId, toBlockId } from "./block-id.ts";
import { comparePaths } from "./compare-paths.ts";
import type { FileEntry } from "./file-entry.ts";
import { createIndexBuild } from "./index-build.ts";
import type { IndexDatabase } from "./index-database.ts";
import { createIndexWriter } from "./index-writer.ts";
import { openWriter } from "./open-index.ts";

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
  return { path, hash: "", guidelines: "", guidelineCount: 0, diagnostics: "", blocks, features: [] };
}

function build(file: string, files: Files): IndexDatabase {
  const target = createIndexBuild(file);
  target.put([...files].sort(([a], [b]) => comparePaths(a, b)).map(([path, ids]) => entryOf(path, ids)));
  target.finish({ tree: [], links: [], fingerprint: "", outerRules: "" });
  return openWriter(file);
}

/** Ids in path, then position order. */
function idsIn(database: IndexDatabase): string[] {
  return database
    .all<[number, string, number]>(
      "SELECT b.kind, b.base, b.n FROM blocks b JOIN files f ON f.id = b.file ORDER BY f.path, b.position",
    )
    .map(([kind, base, n]) => toBlockId(kind, base, n));
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
  const folder = mkdtempSync(join(tmpdir(), "kit-ids-"));
  try {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(path, content), { maxLength: 6 }),
        fc.array(fc.tuple(path, fc.option(content)), { maxLength: 8 }),
        (first, changes) => {
          const files = new Map(first);
          const database = build(join(folder, "index.db"), files);
          expect(idsIn(database)).toEqual(assigned(files));
          for (const [changed, ids] of changes) {
            database.exec("BEGIN");
            const writer = createIndexWriter(database);
            if (ids === null) {
              files.delete(changed);
              writer.removeFile(changed);
            } else {
              files.set(changed, ids);
              writer.putFile(entryOf(changed, ids));
            }
            writer.finish();
            database.exec("COMMIT");
            expect(idsIn(database)).toEqual(assigned(files));
          }
          for (const id of new Set(assigned(files))) expect(keysOfId(database, id)).not.toEqual([]);
          database.close();
        },
      ),
      { numRuns: 100 },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
