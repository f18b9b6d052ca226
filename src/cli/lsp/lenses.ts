import type { CodeLens } from "vscode-languageserver";
import { linkedBlocks, type OpenBlock, openBlocks } from "../../project/features/open-blocks.ts";
import type { LinePlace } from "../../project/features/open-criteria.ts";
import type { OpenText } from "../../project/features/text-layer.ts";
import type { CriterionTest } from "../../protocol/coverage.ts";
import type { Criterion } from "../../specs/coverage/list-criteria.ts";
import { type BlockFacts, blockTitle, rulesOf, rulesTitle, testsTitle } from "./hover-text.ts";
import type { OpenFolder } from "./open-folder.ts";

interface Placed {
  readonly folder: OpenFolder;
  readonly opened: OpenText;
}

/** The subject of a lens; the editor sends it back to have the title. */
export interface LensSubject {
  readonly uri: string;
  readonly kind: "rules" | "criterion" | "block";
}

/** The title of a lens, and the lines that it leads to. */
export interface LensFacts {
  readonly title: string;
  readonly targets: readonly LinePlace[];
}

/** The lines of a text that have something to say, without what they say. */
export async function lensesOf(placed: Placed, uri: string): Promise<CodeLens[]> {
  const { folder, opened } = placed;
  const { specs, guidelines } = opened.source();
  const at = (line: number, kind: LensSubject["kind"]): CodeLens => {
    const start = { line: line - 1, character: 0 };
    return { range: { start, end: start }, data: { uri, kind } satisfies LensSubject };
  };
  if (specs === undefined) {
    const hasRules = guidelines === undefined && rulesOf(folder.layer.explain(opened.path)).length > 0;
    return hasRules ? [at(1, "rules")] : [];
  }
  const criteria = ownCriteria(placed);
  const tests = await Promise.all(criteria.map((criterion) => folder.testsOf(criterion)));
  return [
    // A task states its links itself.
    ...openBlocks(opened)
      .filter(({ draft }) => draft.spec_type !== "task")
      .filter(
        (block) =>
          criteria.some((criterion) => isIn(block, criterion)) ||
          linkedBlocks(folder.layer, opened, block).length > 0,
      )
      .map(({ draft }) => at(draft.span.start_line, "block")),
    // Most criteria have no test: a lens at each would be noise, and the lens of the block counts them.
    ...criteria.flatMap(({ line }, index) => (tests[index]?.length ? [at(line, "criterion")] : [])),
  ];
}

/** The facts of the lens of a line, by the present text; undefined when the line has none any more. */
export async function lensFactsAt(
  placed: Placed,
  { kind, line }: Pick<LensSubject, "kind"> & { readonly line: number },
): Promise<LensFacts | undefined> {
  const { folder, opened } = placed;
  if (kind === "rules") {
    const explanation = folder.layer.explain(opened.path);
    const targets = rulesOf(explanation).map(({ guideline, line: at }) => ({
      path: guideline.source_file,
      line: at,
    }));
    return { title: rulesTitle(explanation), targets };
  }
  if (kind === "criterion") {
    const criterion = folder.criteria.atLine({ path: opened.path, line });
    const tests = criterion && (await folder.testsOf(criterion));
    return tests?.length ? { title: testsTitle(tests), targets: [...tests].sort(failedFirst) } : undefined;
  }
  const facts = await blockFactsAt(placed, line);
  return facts && { title: blockTitle(facts), targets: facts.linked };
}

/** The facts about the block that begins at a line. */
export async function blockFactsAt(placed: Placed, line: number): Promise<BlockFacts | undefined> {
  const { folder, opened } = placed;
  const block = openBlocks(opened).find(({ draft }) => draft.span.start_line === line);
  if (block === undefined) return undefined;
  const criteria = ownCriteria(placed).filter((criterion) => isIn(block, criterion));
  const tests = await Promise.all(criteria.map((criterion) => folder.testsOf(criterion)));
  return {
    title: block.draft.title,
    criteria: tests.map(({ length }) => length),
    linked: linkedBlocks(folder.layer, opened, block),
  };
}

function ownCriteria({ folder, opened }: Placed): readonly Criterion[] {
  return folder.criteria.beside(opened.path).filter(({ path }) => path === opened.path);
}

function isIn({ draft: { span } }: OpenBlock, { line }: Criterion): boolean {
  return span.start_line <= line && line <= span.end_line;
}

function failedFirst(a: CriterionTest, b: CriterionTest): number {
  return Number(b.result?.status === "failed") - Number(a.result?.status === "failed");
}
