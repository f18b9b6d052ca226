import { KitError } from "../../base/kit-error.ts";
import { maxNameBytes } from "../../base/name-fault.ts";
import { pageCoverage, specCoverage } from "../../project/features/coverage.ts";
import { pageStale, staleSpecs } from "../../project/features/stale.ts";
import type { Project } from "../../project/project.ts";
import { listSpecs } from "../../project/query/whole-answers.ts";
import { coveragePageSchema, coverageQuerySchema } from "../../protocol/coverage.ts";
import { diagnosticsSchema, validationResultSchema } from "../../protocol/diagnostic.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { specBlockSchema } from "../../protocol/spec-block.ts";
import {
  impactRequestSchema,
  impactSchema,
  specGraphSchema,
  specPageSchema,
  specQuerySchema,
  validateRequestSchema,
} from "../../protocol/spec-query.ts";
import { stalePageSchema, staleQuerySchema } from "../../protocol/stale.ts";
import { frameworkOf } from "../../specs/frameworks.ts";
import { validateBlocks } from "../../specs/model/validate.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { indexingOf, notFoundYet } from "../not-indexed-yet.ts";
import { invalidSegment } from "../request/read-segment.ts";
import { defineRoute, type Route } from "../route.ts";

const tag = "specs";

/** `/api/specs`: list and search, one, diagnostics, impact, coverage, stale, graph, validate. */
export function specRoutes(project: Project, authorization: Authorization): readonly Route[] {
  const guard = guardProject(authorization);
  const { specs } = project;
  return [
    defineRoute({
      operation: "listSpecs",
      method: "GET",
      path: "/api/specs",
      summary: "List or search spec blocks",
      description:
        "Filters combine with AND. With `q`, ranked by relevance, lifecycle and priority; without it, in order of file, then position. Rules of instruction files are left out where there are other specs, unless `rules=true`, a search or a filter asks for them. `framework` also takes the names kiro, cursor, claude, speckit and tessl.",
      tag,
      guard,
      query: specQuerySchema,
      aliases: { framework: frameworkOf },
      reply: specPageSchema,
      handle: ({ query }) => listSpecs(specs, query),
    }),
    defineRoute({
      operation: "listDiagnostics",
      method: "GET",
      path: "/api/specs/diagnostics",
      summary: "What is wrong with the specs",
      tag,
      guard,
      reply: diagnosticsSchema,
      handle: () => ({ diagnostics: specs.diagnostics(), ...indexingOf(project) }),
    }),
    defineRoute({
      operation: "getSpecGraph",
      method: "GET",
      path: "/api/specs/graph",
      summary: "How specs, code and tests hang together",
      tag,
      guard,
      reply: specGraphSchema,
      handle: () => specs.graph(),
    }),
    defineRoute({
      operation: "findImpact",
      method: "POST",
      path: "/api/specs/impact",
      summary: "What a change affects",
      tag,
      guard,
      body: impactRequestSchema,
      reply: impactSchema,
      errors: ["spec_not_found", "unavailable"],
      handle({ body }) {
        try {
          return specs.impact(body);
        } catch (error) {
          throw error instanceof KitError && error.code === "spec_not_found"
            ? notFoundYet(project, error)
            : error;
        }
      },
    }),
    defineRoute({
      operation: "getSpecCoverage",
      method: "GET",
      path: "/api/specs/coverage",
      summary: "Which acceptance criteria a test names",
      description: "Reads the test files of the project for every answer: ask for large pages.",
      tag,
      guard,
      query: coverageQuerySchema,
      reply: coveragePageSchema,
      handle: async ({ query: { feature, ...page } }) => ({
        ...pageCoverage(
          await specCoverage(project, feature === undefined ? {} : { features: [feature] }),
          page,
        ),
        ...indexingOf(project),
      }),
    }),
    defineRoute({
      operation: "listStaleSpecs",
      method: "GET",
      path: "/api/specs/stale",
      summary: "Specs whose code changed after them",
      tag,
      guard,
      query: staleQuerySchema,
      reply: stalePageSchema,
      handle: async ({ query }) => ({
        ...pageStale(await staleSpecs(project), query),
        ...indexingOf(project),
      }),
    }),
    defineRoute({
      operation: "validateSpecs",
      method: "POST",
      path: "/api/specs/validate",
      summary: "Judge spec blocks by the validation rules",
      description: "The blocks need not belong to the project, and nothing is stored.",
      tag,
      guard,
      body: validateRequestSchema,
      reply: validationResultSchema,
      handle: ({ body }) => {
        const diagnostics = validateBlocks(body.blocks);
        return { valid: diagnostics.every(({ severity }) => severity !== "error"), diagnostics };
      },
    }),
    defineRoute({
      operation: "getSpec",
      method: "GET",
      path: "/api/specs/{id}",
      summary: "One spec block",
      tag,
      guard,
      parameters: { id: "The block's id, percent-encoded." },
      reply: specBlockSchema,
      errors: ["spec_not_found", "unavailable"],
      handle: ({ segment }) => findSpec(project, segment("id", { maxBytes: maxIdBytes })),
    }),
  ];
}

// Titles in scripts of three bytes a letter make ids longer than any other name in a path may be. Such
// an id is good when the project has it.
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
