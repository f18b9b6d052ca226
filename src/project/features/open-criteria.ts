import type { CriterionTest } from "../../protocol/coverage.ts";
import { toNumberKey } from "../../specs/coverage/criteria-index.ts";
import { type Criterion, featurePathOf } from "../../specs/coverage/list-criteria.ts";
import { featureOfKey, resolveReferences } from "../../specs/coverage/resolve-references.ts";
import { indexOf } from "../project-index.ts";
import { createEdges } from "../query/edges.ts";
import { parentOf } from "../scan/tree.ts";
import { createLinkResolver, readPlacedBlock } from "../store/block-reader.ts";
import { titlesAt } from "./criteria-links.ts";
import type { OpenText, ProjectFacts, TextLayer } from "./text-layer.ts";

/** A line of a project file. */
export interface LinePlace {
  readonly path: string;
  /** 1-based. */
  readonly line: number;
}

/** A place in an open test that names a criterion. */
interface OpenTest extends CriterionTest {
  readonly criterion: Criterion;
}

interface Kept {
  readonly facts: ProjectFacts;
  readonly revision: number;
  readonly features: Map<number, readonly Criterion[]>;
  /** The tests of the open texts, by the key of the criterion. */
  tests?: ReadonlyMap<string, readonly OpenTest[]>;
}

/**
 * The criteria of a project by the lines that an editor shows: those of an open spec have the lines and texts of the open text. A feature
 * has a name once one of its files is saved.
 */
export class OpenCriteria {
  readonly #layer: TextLayer;
  #last: Kept | undefined;

  constructor(layer: TextLayer) {
    this.#layer = layer;
  }

  /** The criteria of the feature that a key names. */
  ofName(name: string): readonly Criterion[] {
    const feature = featureOfKey(this.#known().index, name);
    return feature === undefined ? [] : this.#ofFeature(feature);
  }

  /** The criteria that a key names: one, or those of a whole requirement. */
  byKey(name: string, number: string): readonly Criterion[] {
    return numbered(this.ofName(name), number);
  }

  /** The criteria that a number in a document of a feature names, such as in `_Requirements: 1.2_`. */
  numbered(path: string, number: string): readonly Criterion[] {
    return numbered(this.beside(path), number);
  }

  /** The criteria of the feature that a document belongs to. */
  beside(path: string): readonly Criterion[] {
    const feature = this.#known().index.featureByPath.get(featurePathOf(path));
    return feature === undefined ? [] : this.#ofFeature(feature);
  }

  /** The criterion at a line of a spec. */
  atLine({ path, line }: LinePlace): Criterion | undefined {
    return this.beside(path).find((criterion) => criterion.path === path && criterion.line === line);
  }

  /** The criteria that a line of an open test names in any way. */
  atTestLine(opened: OpenText, line: number): readonly Criterion[] {
    return this.#inTest(opened).flatMap((each) => (each.line === line ? each.criterion : []));
  }

  /** The features that have criteria, by the part of a key before the `#`. */
  labels(): readonly string[] {
    return this.#known().index.features.map(({ label }) => label);
  }

  /** The tests of a criterion with their last results; those of open files have the lines of the open texts. */
  tests(criterion: Criterion): readonly CriterionTest[] {
    const saved = this.#known().tests.get(criterion.id) ?? [];
    const found = saved.filter(({ path }) => this.#layer.at(path)?.test() === undefined);
    const kept = this.#kept();
    kept.tests ??= Map.groupBy(
      [...this.#layer.all()].flatMap((opened) => this.#inTest(opened)),
      (test) => test.criterion.id,
    );
    for (const { criterion: _, ...test } of kept.tests.get(criterion.id) ?? []) {
      // A test that has moved is the same test, and one with another text has not run yet.
      const same = saved.find(({ path, quote }) => path === test.path && quote === test.quote);
      found.push({ ...test, ...(same?.result && { result: same.result }) });
    }
    return found;
  }

  /** The lines of tasks and designs that name a criterion by its number. */
  links({ spec_id, path, number }: Criterion): readonly LinePlace[] {
    const index = indexOf(this.#layer.project);
    const key = toNumberKey(number);
    const isNamed = (link: { readonly criterion?: string }): boolean =>
      link.criterion !== undefined && toNumberKey(link.criterion) === key;
    const saved = index.read((database) => {
      const [target] = createLinkResolver(database).resolve(spec_id, parentOf(path));
      if (target === undefined) return [];
      const edges = createEdges(database, index).fromBlock(readPlacedBlock(database, target.key));
      return edges.flatMap(({ to }) =>
        this.#layer.at(to.path) === undefined
          ? to.links.filter(isNamed).map(({ line }) => ({ path: to.path, line }))
          : [],
      );
    });
    const open = [...this.#layer.all()]
      .filter((opened) => featurePathOf(opened.path) === featurePathOf(path))
      .flatMap(({ path: from, source }) =>
        (source().specs?.drafts ?? []).flatMap(({ links }) =>
          links.filter(isNamed).map(({ line }) => ({ path: from, line })),
        ),
      );
    return [...new Map([...saved, ...open].map((each) => [`${each.path} ${each.line}`, each])).values()];
  }

  #known(): ProjectFacts {
    return this.#layer.facts;
  }

  /** Keeps what was computed about the open texts until one of them, or what kit has read, changes. */
  #kept(): Kept {
    const { facts, revision } = this.#layer;
    if (this.#last?.facts !== facts || this.#last.revision !== revision)
      this.#last = { facts, revision, features: new Map() };
    return this.#last;
  }

  #ofFeature(feature: number): readonly Criterion[] {
    const { features } = this.#kept();
    const criteria = features.get(feature) ?? this.#readFeature(feature);
    features.set(feature, criteria);
    return criteria;
  }

  #readFeature(feature: number): readonly Criterion[] {
    const { index, ofFeature } = this.#known();
    const saved = ofFeature.get(feature) ?? [];
    const { path: featurePath = "", label = "" } = index.features[feature] ?? {};
    const open = [...this.#layer.all()].filter(({ path }) => featurePathOf(path) === featurePath);
    if (open.length === 0) return saved;
    const replaced = new Set(open.map(({ path }) => path));
    const specOf = new Map(saved.map(({ path, number, spec_id }) => [`${path} ${number}`, spec_id]));
    return [
      ...saved.filter(({ path }) => !replaced.has(path)),
      ...open
        .flatMap((opened) => opened.criteria())
        .map((criterion) => {
          const spec_id = specOf.get(`${criterion.path} ${criterion.number}`) ?? criterion.spec_id;
          return { ...criterion, spec_id, feature, id: `${label}#${criterion.number}` };
        }),
    ];
  }

  #inTest(opened: OpenText): readonly OpenTest[] {
    const test = opened.test();
    if (test === undefined || test.references.length === 0) return [];
    const { index, namedFeatures } = this.#known();
    const { path } = opened;
    const namedBy = namedFeatures.get(path) ?? [];
    const { namedCriteria } = resolveReferences(index, { path, references: test.references, namedBy });
    return namedCriteria.flatMap(({ criterion: at, line, evidence }) => {
      const saved = index.criteria[at];
      if (saved === undefined) return [];
      const criterion = this.#ofFeature(saved.feature).find(({ id }) => id === saved.id) ?? saved;
      const titles = titlesAt(test.titles, line);
      return [{ criterion, path, line, evidence, quote: test.quotes[line] ?? "", ...(titles && { titles }) }];
    });
  }
}

function numbered(criteria: readonly Criterion[], number: string): readonly Criterion[] {
  const key = toNumberKey(number);
  const exact = criteria.filter((criterion) => toNumberKey(criterion.number) === key);
  if (exact.length > 0) return exact;
  return criteria.filter(({ requirement }) => requirement !== undefined && toNumberKey(requirement) === key);
}
