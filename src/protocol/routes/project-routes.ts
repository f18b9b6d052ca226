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

/** The page for people, and whether the server is there. */
export const homeRoutes = defineRoutes({
  "GET /": {
    ...service,
    operation: "getOverview",
    summary: "What this server knows, and where to go on",
    description: "Browsers get the console, unless `server.console` is false.",
    reply: overviewSchema,
    hasPage: true,
    action: "project.read",
  },
  "GET /health": {
    ...service,
    operation: "checkHealth",
    summary: "Whether the server takes requests: for balancers",
    description: "503 while it leaves (after SIGTERM) and where it cannot keep what it accepts.",
    reply: healthSchema,
    errors: ["store_unavailable", "unavailable"],
  },
  "GET /health/live": {
    ...service,
    operation: "checkLife",
    summary: "Whether the process is there: for what starts it again",
    description: "200 also while it leaves, and while its store is away.",
    reply: healthSchema,
  },
});

/** How a server is set up, and what is wrong with it. */
export const serverRoutes = defineRoutes({
  "GET /server": {
    ...service,
    operation: "getServer",
    summary: "How this server is set up, and what the doctor finds",
    description:
      "The configuration without its secrets, limits, the ids of keys, and findings as those of `kit doctor`.",
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
      "Filters combine with AND. `source` also takes the names kiro, cursor and claude. A file with several names (links) comes once, with its `aliases`. In order of file, then position. With `file` the list is whole although the project is still being indexed.",
    query: guidelineQuerySchema,
    reply: guidelineListSchema,
  },
  "GET /api/guidelines/explain": {
    ...guidelines,
    operation: "explainGuidelines",
    summary: "What applies to a file, tool by tool, and why",
    description:
      "Side by side: what each tool reads for the file, in its order, with about how many tokens, and what is shadowed by what. Files of people's home folders are not among them.",
    query: explainQuerySchema,
    reply: fileExplanationSchema,
  },
  "GET /api/guidelines/lint": {
    ...guidelines,
    operation: "lintGuidelines",
    summary: "Duplicates, contradictions, globs without a file, rules that others shadow",
    reply: diagnosticsSchema,
  },
  "POST /api/guidelines/sync": {
    ...guidelines,
    itemAction: "project.write",
    operation: "syncGuidelines",
    summary: "Write the files of other tools from one source of truth",
    description: "Shows each file as it is and as it will be, and writes nothing unless `preview` is false.",
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
      "Writes nothing unless `preview` is false. `format` also takes the names kiro, cursor and claude.",
    body: convertRequestSchema,
    reply: conversionResultSchema,
    errors: ["guideline_not_found", "conflict"],
  },
  "POST /api/guidelines/export": {
    ...guidelines,
    operation: "exportGuidelines",
    summary: "All guidelines as one file",
    description: "`format` also takes the names cursor and claude. Writes nothing.",
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
      "The files that Git would take: not what it ignores, nor files of keys and variables (`.env`), nor what links lead out to.",
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
      "Filters combine with AND. With `q`, ranked by relevance, lifecycle and priority; without it, in order of file, then position. Rules of instruction files are left out where there are other specs, unless `rules=true`, a search or a filter asks for them. `framework` also takes the names kiro, cursor, claude, speckit and tessl.",
    query: specQuerySchema,
    reply: specPageSchema,
  },
  "GET /api/specs/diagnostics": {
    ...specs,
    operation: "listDiagnostics",
    summary: "What is wrong with the specs",
    description: "Filters combine with AND. Without `limit` all that match come at once.",
    query: diagnosticQuerySchema,
    reply: diagnosticPageSchema,
  },
  "GET /api/specs/features": {
    ...specs,
    operation: "listSpecFeatures",
    summary: "The features that specs are about",
    description:
      "A feature is a folder of documents, or a file that stands for itself, with the numbers of its blocks by type. In order of framework, then path. Obsolete blocks are left out.",
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
    summary: "How specs, code and tests hang together",
    reply: specGraphSchema,
  },
  "POST /api/specs/impact": {
    ...specs,
    operation: "findImpact",
    summary: "What a change affects",
    description:
      "Of `files`, of the files that changed `since` a revision of Git, and of the blocks `ids`, together. With `graph`, the page comes with what to draw of it.",
    body: impactBodySchema,
    reply: impactSchema,
    errors: ["spec_not_found", "unavailable"],
    repeatable: true,
  },
  "GET /api/specs/coverage": {
    ...specs,
    operation: "getSpecCoverage",
    summary: "Which acceptance criteria a test names, and how it ended",
    description:
      "Reads the test files of the project for the first page of a list; the pages behind it come from the same reading. Results are those of `POST /api/specs/results`, found by the titles of tests.",
    query: coverageQuerySchema,
    reply: coveragePageSchema,
  },
  "POST /api/specs/results": {
    ...specs,
    action: "project.write",
    operation: "recordTestResults",
    summary: "Hand in how tests ended",
    description:
      "Takes JUnit XML, or the JSON of Vitest and Jest, of at most 16 MiB. What was known of the files of the report is replaced, what was known of others stays. Coverage then tells how the tests of each criterion ended.",
    body: testReportSchema,
    bodyBytes: 16 * 1024 * 1024,
    reply: recordedResultsSchema,
    errors: ["store_unavailable"],
    repeatable: true,
  },
  "GET /api/specs/stale": {
    ...specs,
    operation: "listStaleSpecs",
    summary: "Specs whose code changed after them",
    query: staleQuerySchema,
    reply: stalePageSchema,
  },
  "POST /api/specs/validate": {
    ...specs,
    operation: "validateSpecs",
    summary: "Judge spec blocks by the validation rules",
    description: "The blocks need not belong to the project, and nothing is stored.",
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
