import { KitError } from "../../base/kit-error.ts";
import { maxNameBytes } from "../../base/names.ts";
import { toolSettings } from "../../guidelines/settings/tool-settings.ts";
import { conversionFormatOf, sourceTypeOf } from "../../guidelines/tools/tool-table.ts";
import type { ChangesSince } from "../../project/features/changes-since.ts";
import { readLines } from "../../project/features/read-lines.ts";
import type { Project } from "../../project/project.ts";
import { pageDiagnostics } from "../../project/query/page.ts";
import type { ServiceAction } from "../../protocol/access.ts";
import type { CoverageReport } from "../../protocol/coverage.ts";
import { explainTools } from "../../protocol/enums.ts";
import type {
  AppliedGuideline,
  ExplainTool,
  Explanation,
  FileExplanation,
} from "../../protocol/guideline-query.ts";
import type { IndexingProgress } from "../../protocol/indexing.ts";
import { fileRoutes, guidelineRoutes, specRoutes } from "../../protocol/routes/project-routes.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import type { Impact, ImpactBody, ImpactGraph } from "../../protocol/spec-query.ts";
import { frameworkOf } from "../../specs/frameworks.ts";
import { validateBlocks } from "../../specs/model/validate.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { isOfOwnPage, readOnlyError } from "../console/console-request.ts";
import { invalidSegment } from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route, type RouteRequest } from "../route.ts";

/** `/api/specs`: list and search, one, diagnostics, impact, coverage, stale, graph, validate. */
export function bindSpecRoutes(project: Project, authorization: Authorization): readonly Route[] {
  const { specs } = project;
  const coverage = new CoverageReadings(project);
  const handlers: Handlers<typeof specRoutes> = {
    "GET /api/specs": {
      aliases: { framework: frameworkOf },
      handle: ({ query }) => specs.query(query),
    },
    "GET /api/specs/diagnostics": {
      aliases: { framework: frameworkOf },
      handle: ({ query }) => ({ ...pageDiagnostics(specs, query), ...indexingOf(project) }),
    },
    "GET /api/specs/features": {
      aliases: { framework: frameworkOf },
      handle: ({ query }) => specs.features(query),
    },
    "GET /api/specs/outline": {
      aliases: { framework: frameworkOf },
      handle: ({ query }) => specs.outline(query),
    },
    "GET /api/specs/graph": () => specs.graph(),
    async "POST /api/specs/impact"({ body }) {
      try {
        return await findImpact(project, body);
      } catch (error) {
        throw error instanceof KitError && error.code === "spec_not_found"
          ? notFoundYet(project, error)
          : error;
      }
    },
    async "GET /api/specs/coverage"({ query: { feature, ...page } }) {
      const { pageCoverage } = await import("../../project/features/coverage.ts");
      const report = await coverage.read(feature, { isFurtherPage: page.cursor !== undefined });
      return { ...pageCoverage(report, page), ...indexingOf(project) };
    },
    async "POST /api/specs/results"({ body: { report, format, commit }, principal }) {
      coverage.forget();
      const { recordResults } = await import("../../project/results/record-results.ts");
      return await recordResults(project, report, { format, commit, by: principal?.id });
    },
    async "GET /api/specs/history"({ query }) {
      const { criterionHistory } = await import("../../project/features/spec-history.ts");
      return await criterionHistory(project, query);
    },
    async "GET /api/specs/stale"({ query }) {
      const { pageStale, staleSpecs } = await import("../../project/features/stale.ts");
      return { ...pageStale(await staleSpecs(project), query), ...indexingOf(project) };
    },
    "POST /api/specs/validate": ({ body }) => {
      const diagnostics = validateBlocks(body.blocks);
      return { valid: diagnostics.every(({ severity }) => severity !== "error"), diagnostics };
    },
    "GET /api/specs/{id}": ({ segment }) => findSpec(project, segment("id", { maxBytes: maxIdBytes })),
  };
  return bindRoutes(specRoutes, handlers, ({ principal, action = "project.read" }) =>
    authorization.check({ principal, action }),
  );
}

/** How long the pages of one list share one read of the tests. */
const readingMs = 60_000;

/** Reads coverage, and caches the last report for its other pages: reading the tests of a large project takes seconds. */
class CoverageReadings {
  readonly #project: Project;
  #last: { readonly feature: string | undefined; readonly report: CoverageReport } | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(project: Project) {
    this.#project = project;
  }

  async read(
    feature: string | undefined,
    { isFurtherPage }: { readonly isFurtherPage: boolean },
  ): Promise<CoverageReport> {
    if (isFurtherPage && this.#last !== undefined && this.#last.feature === feature) return this.#last.report;
    const { specCoverage } = await import("../../project/features/coverage.ts");
    const report = await specCoverage(this.#project, feature === undefined ? {} : { features: [feature] });
    this.forget();
    this.#last = { feature, report };
    this.#timer = setTimeout(() => this.forget(), readingMs).unref();
    return report;
  }

  forget(): void {
    clearTimeout(this.#timer);
    this.#last = undefined;
  }
}

/** The most changed files; a revision with more changes is refused. */
const maxChangedFiles = 10_000;

/** Returns the impact of files, of blocks, and of changes since a revision; with `graph`, also the tests that name criteria. */
async function findImpact(
  project: Project,
  { since, graph, files = [], ...request }: ImpactBody,
): Promise<Impact> {
  const changed = since === undefined ? undefined : await changedSince(project, since);
  const { readNamedSpecs } = await import("../../project/features/named-specs.ts");
  const all = { ...request, files: [...files, ...(changed?.files ?? [])], graph };
  const impact = project.specs.impact(all, changed?.compared, await readNamedSpecs(project, all.files));
  const signed = changed === undefined ? impact : { ...impact, changed_files: [...changed.files] };
  if (signed.graph === undefined) return signed;
  const { specCoverage } = await import("../../project/features/coverage.ts");
  return { ...signed, graph: withTests(signed.graph, await specCoverage(project)) };
}

async function changedSince(project: Project, since: string): Promise<ChangesSince> {
  try {
    const { readChangesSince } = await import("../../project/features/changes-since.ts");
    const changes = await readChangesSince(project, { since });
    const { files: changed } = changes;
    if (changed.length <= maxChangedFiles) return changes;
    const message = `${changed.length.toLocaleString("en")} files differ from this revision; at most ${maxChangedFiles.toLocaleString("en")} can be asked about.`;
    throw new KitError({ code: "invalid_request", message, hint: "Name a later revision." });
  } catch (error) {
    if (!(error instanceof KitError) || error.code !== "invalid_request") throw error;
    throw wrongRevision(error);
  }
}

/** Creates the error for an invalid revision, with its path in the body. */
function wrongRevision({ message, hint = "Name a branch, a tag or a commit." }: KitError): KitError {
  const meta = { issues: [{ path: "since", message }] };
  return new KitError({ code: "invalid_request", message, hint, meta });
}

/** Adds to a graph the tests that name criteria of its blocks. */
function withTests(graph: ImpactGraph, { criteria }: CoverageReport): ImpactGraph {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const added = new Map<string, ImpactGraph["edges"][number]>();
  for (const { spec_id, tests } of criteria) {
    if (!nodes.has(spec_id)) continue;
    for (const { path } of tests) {
      added.set(`${spec_id}\n${path}`, { from: spec_id, to: path, kind: "covered_by" });
      if (!nodes.has(path)) nodes.set(path, { id: path, kind: "test", title: path });
    }
  }
  return { ...graph, nodes: [...nodes.values()], edges: [...graph.edges, ...added.values()] };
}

// Titles in scripts with three bytes per letter make ids longer than other names in a path can be. Such
// an id is valid if the project has it.
const maxIdBytes = 1_024;

function findSpec(project: Project, id: string): SpecBlock {
  const block = project.specs.get(id);
  if (block !== undefined) return block;
  if (Buffer.byteLength(id) > maxNameBytes) {
    throw invalidSegment("id", `must have at most ${maxNameBytes} bytes`);
  }
  const message = "There is no spec block with this id.";
  throw notFoundYet(project, new KitError({ code: "spec_not_found", message }));
}

type WriteRequest = Pick<RouteRequest, "raw" | "header" | "principal"> & {
  readonly itemAction: ServiceAction;
};

/** `/api/guidelines`: list, one, convert, export. */
export function bindGuidelineRoutes(
  project: Project,
  authorization: Authorization,
  { pageLooksOnly = false }: { readonly pageLooksOnly?: boolean } = {},
): readonly Route[] {
  const checkWrite = async ({ raw, header, principal, itemAction: action }: WriteRequest): Promise<void> => {
    if (pageLooksOnly && isOfOwnPage(raw.headers, header("host") ?? "")) throw readOnlyError();
    await authorization.check({ principal, action });
  };
  const { guidelines } = project;
  const handlers: Handlers<typeof guidelineRoutes> = {
    "GET /api/guidelines": {
      aliases: { source: sourceTypeOf },
      async handle({ query }) {
        if (query.file !== undefined) await project.ready(query.file);
        return guidelines.list(query);
      },
    },
    async "GET /api/guidelines/explain"({ query: { file, tools = explainTools } }) {
      await project.ready(file);
      const explanations = tools.map((tool) => toReferences(tool, guidelines.explain(file, tool)));
      return { file, explanations, ...indexingOf(project) };
    },
    "GET /api/guidelines/lint": () => ({
      diagnostics: [...guidelines.diagnostics(), ...guidelines.lint()],
      ...indexingOf(project),
    }),
    async "POST /api/guidelines/sync"(input) {
      const { preview = true, ...write } = input.body;
      if (preview) {
        const plan = await guidelines.planSync(write);
        // These files are shown whole, with the literal keys of servers that people wrote.
        const paths = new Set(Object.values(toolSettings).map(({ path }) => path));
        if (plan.entries.some(({ path }) => paths.has(path))) await checkWrite(input);
        return { ...plan, written: [] };
      }
      await checkWrite(input);
      return await guidelines.sync(write);
    },
    "GET /api/guidelines/{id}": ({ segment }) => {
      const guideline = guidelines.get(segment("id"));
      if (guideline !== undefined) return guideline;
      const message = "There is no guideline with this id.";
      throw notFoundYet(project, new KitError({ code: "guideline_not_found", message }));
    },
    "POST /api/guidelines/convert": {
      aliases: { format: conversionFormatOf },
      async handle(input) {
        if (input.body.preview === false) await checkWrite(input);
        return guidelines.convert(input.body);
      },
    },
    "POST /api/guidelines/export": {
      aliases: { format: conversionFormatOf },
      handle: ({ body }) => guidelines.export(body),
    },
  };
  return bindRoutes(guidelineRoutes, handlers, guardProject(authorization));
}

function toReferences(
  tool: ExplainTool,
  { applied, shadowed, tokens, notes = [] }: Explanation,
): FileExplanation["explanations"][number] {
  return {
    tool,
    applied: applied.map(toReference),
    shadowed: shadowed.map(({ shadowed_by, rule, ...shadowedGuideline }) => ({
      ...toReference(shadowedGuideline),
      shadowed_by,
      rule,
    })),
    tokens,
    notes,
  };
}

function toReference({ guideline: { id, title, source_file }, ...why }: AppliedGuideline) {
  return { guideline_id: id, title, source_file, ...why };
}

/** `/api/files`: lines of the repository's files. */
export function bindFileRoutes(project: Project, authorization: Authorization): readonly Route[] {
  const handlers: Handlers<typeof fileRoutes> = {
    async "GET /api/files"({ query }) {
      try {
        return await readLines(project, query);
      } catch (error) {
        throw error instanceof KitError && error.code === "not_found" ? notFoundYet(project, error) : error;
      }
    },
  };
  return bindRoutes(fileRoutes, handlers, ({ principal }) =>
    authorization.check({ principal, action: "file.read" }),
  );
}

/** Marks an answer that can lack files that are not indexed yet. */
export function indexingOf(project: Project): { readonly indexing?: IndexingProgress } {
  const indexing = project.indexing();
  return indexing === undefined ? {} : { indexing };
}

/** While a project is being indexed, a missing record can still appear: the error asks the caller to retry. */
function notFoundYet(project: Project, notFound: KitError): KitError {
  const indexing = project.indexing();
  if (indexing === undefined) return notFound;
  const { done, total } = indexing;
  const message = `It is not among what is indexed so far (${done} of ${total} files). Ask again in a moment.`;
  return new KitError({ code: "unavailable", message });
}
