import { z } from "zod";
import { coveragePageSchema, coverageQuerySchema } from "../coverage.ts";
import {
  diagnosticPageSchema,
  diagnosticQuerySchema,
  diagnosticsSchema,
  validationResultSchema,
} from "../diagnostic.ts";
import {
  conversionResultSchema,
  exportResultSchema,
  guidelineListSchema,
  guidelineSchema,
} from "../guideline.ts";
import {
  convertRequestSchema,
  explainQuerySchema,
  exportRequestSchema,
  fileExplanationSchema,
  guidelineQuerySchema,
} from "../guideline-query.ts";
import { fileLinesQuerySchema, fileLinesSchema } from "../project-file.ts";
import { healthSchema, overviewSchema, serverStateSchema } from "../service.ts";
import { specBlockSchema } from "../spec-block.ts";
import { criterionHistoryQuerySchema, criterionHistorySchema } from "../spec-history.ts";
import {
  outlinePageSchema,
  outlineQuerySchema,
  specFeaturePageSchema,
  specFeatureQuerySchema,
} from "../spec-outline.ts";
import {
  impactBodySchema,
  impactSchema,
  specGraphSchema,
  specPageSchema,
  specQuerySchema,
  validateRequestSchema,
} from "../spec-query.ts";
import { stalePageSchema, staleQuerySchema } from "../stale.ts";
import { syncBodySchema, syncResultSchema } from "../sync.ts";
import { recordedResultsSchema, testReportSchema } from "../test-results.ts";
import { defineRoutes } from "./route.ts";

const service = { tag: "service" } as const;

/** The overview, and the health checks. */
export const homeRoutes = defineRoutes({
  "GET /": {
    ...service,
    operation: "getOverview",
    summary: "An overview of the project, with links to its routes",
    description: "Browsers get the console, unless `server.console` is false.",
    reply: overviewSchema,
    hasPage: true,
    action: "project.read",
  },
  "GET /health": {
    ...service,
    operation: "checkHealth",
    summary: "Whether the server accepts requests: for load balancers",
    description:
      "503 while the server drains (after SIGTERM) and while it cannot store the work that it accepts.",
    reply: healthSchema,
    errors: ["store_unavailable", "unavailable"],
  },
  "GET /health/live": {
    ...service,
    operation: "checkLife",
    summary: "Whether the process is alive: for its supervisor",
    description: "200 also while the server drains and while its store is unavailable.",
    reply: healthSchema,
  },
});

/** The server's configuration and its faults. */
export const serverRoutes = defineRoutes({
  "GET /server": {
    ...service,
    operation: "getServer",
    summary: "The server's configuration, and the findings of `kit doctor`",
    description:
      "The configuration without secrets, limits, the ids of keys, and findings like those of `kit doctor`.",
    reply: serverStateSchema,
    errors: ["unavailable", "store_unavailable"],
    action: "server.read",
  },
});

/** The description of all routes. */
export const descriptionRoutes = defineRoutes({
  "GET /openapi.json": {
    ...service,
    operation: "getDescription",
    summary: "This description, OpenAPI 3.1",
    reply: z.looseObject({ openapi: z.string() }),
  },
});

const guidelines = { tag: "guidelines", action: "project.read" } as const;

export const guidelineRoutes = defineRoutes({
  "GET /api/guidelines": {
    ...guidelines,
    operation: "listGuidelines",
    summary: "List guidelines",
    description:
      "Filters combine with AND. `source` also accepts the names kiro, cursor and claude. A file with several paths (links) is listed once, with its `aliases`. In order of file, then position. With `file` the list is complete even while the project is still being indexed.",
    query: guidelineQuerySchema,
    reply: guidelineListSchema,
  },
  "GET /api/guidelines/explain": {
    ...guidelines,
    operation: "explainGuidelines",
    summary: "The guidelines that each tool applies to a file, and why",
    description:
      "For each tool: the guidelines that it reads for the file, in its order, with approximate tokens, and the shadowed ones with their replacements. Leaves out files in users' home folders.",
    query: explainQuerySchema,
    reply: fileExplanationSchema,
  },
  "GET /api/guidelines/lint": {
    ...guidelines,
    operation: "lintGuidelines",
    summary:
      "Contradictions, copies that differ, globs and links that lead to no file, rules without effect, files that cannot be read",
    reply: diagnosticsSchema,
  },
  "POST /api/guidelines/sync": {
    ...guidelines,
    itemAction: "project.write",
    operation: "syncGuidelines",
    summary: "Write the guideline files of other tools from one source of truth",
    description:
      "Returns each file before and after the write, and writes nothing unless `preview` is false.",
    body: syncBodySchema,
    reply: syncResultSchema,
    errors: ["conflict"],
  },
  "GET /api/guidelines/{id}": {
    ...guidelines,
    operation: "getGuideline",
    summary: "One guideline",
    parameters: { id: "The guideline's id: 16 hex digits." },
    reply: guidelineSchema,
    errors: ["guideline_not_found", "unavailable"],
  },
  "POST /api/guidelines/convert": {
    ...guidelines,
    itemAction: "project.write",
    operation: "convertGuideline",
    summary: "Convert a guideline to another format",
    description:
      "Writes nothing unless `preview` is false. `format` also accepts the names kiro, cursor and claude.",
    body: convertRequestSchema,
    reply: conversionResultSchema,
    errors: ["guideline_not_found", "conflict"],
  },
  "POST /api/guidelines/export": {
    ...guidelines,
    operation: "exportGuidelines",
    summary: "All guidelines as one file",
    description: "`format` also accepts the names cursor and claude. Writes nothing.",
    body: exportRequestSchema,
    reply: exportResultSchema,
    repeatable: true,
  },
});

/** Lines of the repository's files. */
export const fileRoutes = defineRoutes({
  "GET /api/files": {
    tag: "service",
    operation: "readFileLines",
    summary: "Lines of a text file of the repository",
    description:
      "Only files that Git would track: no ignored files, no files with keys or variables (`.env`), and no links that lead out of the repository.",
    query: fileLinesQuerySchema,
    reply: fileLinesSchema,
    errors: ["not_found", "payload_too_large", "unavailable"],
    action: "file.read",
  },
});

const specs = { tag: "specs", action: "project.read" } as const;

export const specRoutes = defineRoutes({
  "GET /api/specs": {
    ...specs,
    operation: "listSpecs",
    summary: "List or search spec blocks",
    description:
      "Filters combine with AND. With `q`, ranked by relevance, lifecycle and priority; without it, in order of file, then position. Rules of instruction files are left out if there are other specs, unless `rules=true`, a search or a filter asks for them. `framework` also accepts the names kiro, cursor, claude, speckit and tessl.",
    query: specQuerySchema,
    reply: specPageSchema,
  },
  "GET /api/specs/diagnostics": {
    ...specs,
    operation: "listDiagnostics",
    summary: "List the faults of the specs",
    description: "Filters combine with AND. Without `limit` the reply holds all matches.",
    query: diagnosticQuerySchema,
    reply: diagnosticPageSchema,
  },
  "GET /api/specs/features": {
    ...specs,
    operation: "listSpecFeatures",
    summary: "The features that the specs describe",
    description:
      "A feature is a folder of documents or a single file, with the number of its blocks by type. In order of framework, then path. Obsolete blocks are left out.",
    query: specFeatureQuerySchema,
    reply: specFeaturePageSchema,
  },
  "GET /api/specs/outline": {
    ...specs,
    operation: "getSpecOutline",
    summary: "The blocks of a feature, without their texts",
    description: "In order of file, then position. Obsolete blocks are left out.",
    query: outlineQuerySchema,
    reply: outlinePageSchema,
  },
  "GET /api/specs/graph": {
    ...specs,
    operation: "getSpecGraph",
    summary: "The graph of specs, code and tests",
    reply: specGraphSchema,
  },
  "POST /api/specs/impact": {
    ...specs,
    operation: "findImpact",
    summary: "The specs, tests and files that a change affects",
    description:
      "The change is the union of `files`, the files that changed `since` a revision of Git, and the blocks `ids`. With `graph`, the page includes its nodes and edges.",
    body: impactBodySchema,
    reply: impactSchema,
    errors: ["spec_not_found", "unavailable"],
    repeatable: true,
  },
  "GET /api/specs/coverage": {
    ...specs,
    operation: "getSpecCoverage",
    summary: "Acceptance criteria, the tests that name them, and their results",
    description:
      "Reads the test files that have changed for the first page of a list; later pages use the same data. Results come from `POST /api/specs/results`, matched by the titles of tests.",
    query: coverageQuerySchema,
    reply: coveragePageSchema,
  },
  "POST /api/specs/results": {
    ...specs,
    action: "project.write",
    operation: "recordTestResults",
    summary: "Submit the results of tests",
    description:
      "Accepts JUnit XML, or the JSON of Vitest and Jest, of at most 16 MiB. Replaces the earlier results of the files in the report; results of other files stay. Coverage then includes the results for each criterion.",
    body: testReportSchema,
    bodyBytes: 16 * 1024 * 1024,
    reply: recordedResultsSchema,
    errors: ["store_unavailable"],
    repeatable: true,
  },
  "GET /api/specs/history": {
    ...specs,
    operation: "getCriterionHistory",
    summary: "How the tests of a criterion ended over time",
    description:
      "Newest first: an entry per report that changed the state of the criterion, and one per day. Empty for a criterion that no report was about.",
    query: criterionHistoryQuerySchema,
    reply: criterionHistorySchema,
  },
  "GET /api/specs/stale": {
    ...specs,
    operation: "listStaleSpecs",
    summary: "Specs whose code changed after the spec",
    query: staleQuerySchema,
    reply: stalePageSchema,
  },
  "POST /api/specs/validate": {
    ...specs,
    operation: "validateSpecs",
    summary: "Validate spec blocks",
    description: "The blocks need not belong to the project; nothing is stored.",
    body: validateRequestSchema,
    reply: validationResultSchema,
    repeatable: true,
  },
  "GET /api/specs/{id}": {
    ...specs,
    operation: "getSpec",
    summary: "One spec block",
    parameters: { id: "The block's id, percent-encoded." },
    reply: specBlockSchema,
    errors: ["spec_not_found", "unavailable"],
  },
});
