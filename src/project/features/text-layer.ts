import { existsSync } from "node:fs";
import { join } from "node:path";
import { explainFile } from "../../guidelines/explain/explain-file.ts";
import type { GuidelineRecord } from "../../guidelines/guideline-record.ts";
import { createIgnoreList } from "../../guidelines/lint/ignore-findings.ts";
import { lintGuidelines } from "../../guidelines/lint/lint-guidelines.ts";
import { matcherOf } from "../../guidelines/match/match-guidelines.ts";
import { isSkillFile, lintSkills } from "../../guidelines/skills/skill-format.ts";
import type { CriterionTest } from "../../protocol/coverage.ts";
import type { Diagnostic } from "../../protocol/diagnostic.ts";
import type { Explanation } from "../../protocol/guideline-query.ts";
import { openspecDocumentOf } from "../../specs/adapters/openspec/openspec-document.ts";
import { indexCriteria } from "../../specs/coverage/criteria-index.ts";
import { type Criterion, listCriteria } from "../../specs/coverage/list-criteria.ts";
import { resolveReferences } from "../../specs/coverage/resolve-references.ts";
import { readTestText, type TestText } from "../../specs/coverage/test-references.ts";
import type { FrontMatterKeys } from "../../specs/markdown/front-matter.ts";
import { isTestPath } from "../../specs/model/mentions.ts";
import type { Project } from "../project.ts";
import type { ProjectConfig } from "../project-config.ts";
import { indexOf, type ProjectIndex } from "../project-index.ts";
import { danglingMessage, specDiagnostics } from "../query/edges.ts";
import { readSources } from "../results/results-store.ts";
import {
  createSourceCatalog,
  readSourceText,
  type SourceCatalog,
  type SourceText,
} from "../scan/source-catalog.ts";
import { parentOf } from "../scan/tree.ts";
import { createLinkResolver } from "../store/block-reader.ts";
import { baseOf } from "../store/block-row.ts";
import { danglingKey, testsOfCriteria } from "./coverage.ts";
import { type ProjectCriteria, readCriteriaInSteps } from "./criteria-links.ts";
import { contentHash } from "./stale.ts";

/** A text that an editor has open; kit reads it once, for the first question. */
export interface OpenText {
  /** Real, relative to the root. */
  readonly path: string;
  readonly text: string;
  /** Whether the file on the disk has this text, as far as the index knows. */
  isSaved(): boolean;
  source(): SourceText;
  /** The criteria that the text states, without what the other files of the feature add. */
  criteria(): readonly Criterion[];
  /** The keys of front matter that the tools of the file read. */
  frontMatter(): FrontMatterKeys;
  /** Undefined for a file that is no test. */
  test(): TestText | undefined;
}

/** The criteria of a project, and their tests. */
export interface ProjectFacts extends ProjectCriteria {
  readonly ofFeature: ReadonlyMap<number, readonly Criterion[]>;
  /** By the key of the criterion. */
  readonly tests: ReadonlyMap<string, readonly CriterionTest[]>;
}

const noFacts: ProjectFacts = {
  index: indexCriteria({ criteria: [], features: [] }),
  sources: readSources([]),
  namedFeatures: new Map(),
  ofFeature: new Map(),
  tests: new Map(),
};

/**
 * The texts that an editor has open, over the index of a project. The layer is in memory only: other processes read the same index,
 * and an unsaved text must not enter it.
 *
 * A file whose text is saved has exactly the problems that `kit specs validate` and `kit guidelines lint` print.
 */
export class TextLayer {
  readonly project: Project;
  readonly #index: ProjectIndex;
  readonly #config: ProjectConfig;
  readonly #catalog: SourceCatalog;
  readonly #texts = new Map<string, OpenText>();
  /** The guidelines with the unsaved ones, until one of them changes. */
  #rules: { readonly of: readonly object[]; readonly records: readonly GuidelineRecord[] } | undefined;
  #linted: { readonly of: readonly unknown[]; readonly findings: readonly Diagnostic[] } | undefined;
  #changes = 0;
  #revision = 0;
  #facts: ProjectFacts = noFacts;

  constructor(project: Project, config: ProjectConfig) {
    this.project = project;
    this.#index = indexOf(project);
    this.#config = config;
    this.#catalog = createSourceCatalog(config);
  }

  /** Differs from an earlier value when a text was opened, changed or closed. */
  get revision(): number {
    return this.#revision;
  }

  /** The criteria of the project and their tests, as of the last `readFacts`. */
  get facts(): ProjectFacts {
    return this.#facts;
  }

  /**
   * Reads the criteria of the project and their tests. An index that changes all the time is read again and again, so the questions of
   * an editor are answered by what was read last instead of waiting for it.
   */
  async readFacts(): Promise<void> {
    const known = await readCriteriaInSteps(this.project);
    const ofFeature = Map.groupBy(known.index.criteria, ({ feature }) => feature);
    const tests = await testsOfCriteria(this.project, known);
    this.#facts = { ...known, ofFeature, tests };
  }

  /** Puts a text in the place of a file's. */
  open(path: string, text: string): OpenText {
    const names = [path, ...this.#index.aliases().namesOf(path)];
    const hash = once(() => contentHash(Buffer.from(text)));
    const source = once(() =>
      readSourceText(path, { text: text.replace(/^\ufeff/, ""), catalog: this.#catalog, names }),
    );
    const opened: OpenText = {
      path,
      text,
      isSaved: () => this.#index.fileHash(path) === hash(),
      source,
      criteria: once(() => {
        const drafts = source().specs?.drafts ?? [];
        return listCriteria(drafts.map((draft) => ({ ...draft, id: baseOf(draft.id), path }))).criteria;
      }),
      frontMatter: once(() => Object.assign({}, ...names.map(this.#catalog.frontMatterOf))),
      test: once(() => (isTestPath(path) ? readTestText(text) : undefined)),
    };
    this.#texts.set(path, opened);
    this.#revision += 1;
    if (names.some(this.#catalog.isGuidelineFile)) this.#changes += 1;
    return opened;
  }

  /** Shows the file on the disk again. */
  close(path: string): void {
    this.#texts.delete(path);
    this.#revision += 1;
    this.#changes += 1;
  }

  at(path: string): OpenText | undefined {
    return this.#texts.get(path);
  }

  all(): Iterable<OpenText> {
    return this.#texts.values();
  }

  /** The problems of an open text. While files are not indexed yet, only those that the text shows by itself. */
  problems(opened: OpenText): readonly Diagnostic[] {
    const { path } = opened;
    const { specs, guidelines } = opened.source();
    const ignored = createIgnoreList(this.#config.lint?.ignore);
    const own = (guidelines?.diagnostics ?? []).filter((finding) => !ignored.hasFinding(finding));
    const found: Diagnostic[] = [];
    if (this.#index.indexing() !== undefined) found.push(...(specs?.diagnostics ?? []), ...own);
    else {
      const isOwn = (diagnostic: Diagnostic): boolean => diagnostic.path === path;
      if (specs !== undefined && opened.isSaved())
        found.push(...this.#index.read((database) => specDiagnostics(database, path)));
      else if (specs !== undefined) found.push(...specs.diagnostics, ...this.#danglingLinks(opened));
      found.push(...own);
      if (guidelines !== undefined) found.push(...this.#lint().filter(isOwn));
      // Copies of one skill are checked once, so all skills are read.
      if (isSkillFile(path))
        found.push(
          ...lintSkills({ files: this.#index.files(), readText: this.#readText }).filter(
            (finding) => isOwn(finding) && !ignored.hasFinding(finding),
          ),
        );
      found.push(...this.#danglingKeys(opened));
    }
    // A file that is a spec and a guideline reports its front matter twice.
    return [...new Map(found.map((each) => [`${each.line} ${each.column} ${each.message}`, each])).values()];
  }

  /** Which guidelines apply to a file, by the open texts of the guidelines. */
  explain(file: string): Explanation {
    const records = this.#unsavedRecords();
    if (records === undefined) return this.project.guidelines.explain(file);
    return explainFile({
      records,
      matcher: matcherOf(records),
      file,
      tool: undefined,
      readText: this.#readText,
    });
  }

  readonly #readText = (path: string): string | undefined =>
    this.#texts.get(path)?.text ?? this.#index.readText(path);

  /** The findings about the open guidelines; those about all guidelines of a project take too long while a person types. */
  #lint(): readonly Diagnostic[] {
    const records = this.#unsavedRecords() ?? this.#index.guidelineRecords();
    const files = this.#index.files();
    const of = [records, files, this.#changes];
    if (isSameList(this.#linted?.of, of)) return this.#linted?.findings ?? [];
    const findings = lintGuidelines(records, {
      files,
      readText: this.#readText,
      hasPath: (path) => existsSync(join(this.#index.root, path)),
      synced: this.#config.guidelines,
      ignore: this.#config.lint?.ignore,
      only: new Set(this.#texts.keys()),
    });
    this.#linted = { of, findings };
    return findings;
  }

  /** All guidelines with those of the open texts; undefined if the index has the same ones. */
  #unsavedRecords(): readonly GuidelineRecord[] | undefined {
    const unsaved = [...this.#texts.values()].filter((each) => each.source().guidelines && !each.isSaved());
    if (unsaved.length === 0) return undefined;
    const indexed = this.#index.guidelineRecords();
    const of = [indexed, ...unsaved];
    if (isSameList(this.#rules?.of, of)) return this.#rules?.records;
    const paths = new Set(unsaved.map(({ path }) => path));
    const saved = indexed.filter(({ source_file }) => !paths.has(source_file));
    const read = unsaved.flatMap((each) => each.source().guidelines?.records ?? []);
    const records = [...saved, ...read].sort((a, b) => compare(a.source_file, b.source_file));
    this.#rules = { of, records };
    return records;
  }

  /** Links of an unsaved spec to blocks that neither it nor the project has. */
  #danglingLinks(opened: OpenText): readonly Diagnostic[] {
    const { path } = opened;
    const drafts = opened.source().specs?.drafts ?? [];
    const own = new Set(drafts.flatMap(({ id, aliases = [] }) => [baseOf(id), ...aliases]));
    // The problems of changes are those of several files; the saved text has them.
    if (openspecDocumentOf(path)?.kind === "delta") return [];
    const links = drafts.flatMap((draft) => draft.links).filter(({ target }) => !own.has(target));
    return this.#index.read((database) => {
      const resolver = createLinkResolver(database);
      return links
        .filter(({ target }) => resolver.resolve(target, parentOf(path)).length === 0)
        .map(({ target, line }) => {
          const message = danglingMessage(target);
          return { severity: "warning", rule: "dangling-reference", message, path, line };
        });
    });
  }

  /** Keys of an open test that no spec has, with their columns. */
  #danglingKeys(opened: OpenText): readonly Diagnostic[] {
    const { path, text } = opened;
    const references = opened.test()?.references ?? [];
    if (references.length === 0) return [];
    const { index, namedFeatures } = this.#facts;
    const { dangling } = resolveReferences(index, {
      path,
      references,
      namedBy: namedFeatures.get(path) ?? [],
    });
    if (dangling.length === 0) return [];
    const lines = text.split(/\r\n|\n|\r/);
    return dangling.map(({ line, key }) => {
      const column = (lines[line - 1] ?? "").toLowerCase().indexOf(key.toLowerCase()) + 1;
      return {
        ...danglingKey({ path, line, key }),
        ...(column > 0 && { column, end_column: column + key.length }),
      };
    });
  }
}

function isSameList(known: readonly unknown[] | undefined, list: readonly unknown[]): boolean {
  return known?.length === list.length && list.every((each, index) => each === known[index]);
}

function once<Value>(read: () => Value): () => Value {
  let value: { readonly read: Value } | undefined;
  return () => {
    value ??= { read: read() };
    return value.read;
  };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
