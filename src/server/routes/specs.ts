import { KitError } from "../../base/kit-error.ts";
import { maxNameBytes } from "../../base/name-fault.ts";
import { pageCoverage, specCoverage } from "../../project/features/coverage.ts";
import { pageStale, staleSpecs } from "../../project/features/stale.ts";
import type { Project } from "../../project/project.ts";
import { listSpecs } from "../../project/query/whole-answers.ts";
import { specRoutes } from "../../protocol/routes/project-routes.ts";
import type { SpecBlock } from "../../protocol/spec-block.ts";
import { frameworkOf } from "../../specs/frameworks.ts";
import { validateBlocks } from "../../specs/model/validate.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { indexingOf, notFoundYet } from "../not-indexed-yet.ts";
import { invalidSegment } from "../request/read-segment.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";

/** `/api/specs`: list and search, one, diagnostics, impact, coverage, stale, graph, validate. */
export function bindSpecRoutes(project: Project, authorization: Authorization): readonly Route[] {
  const { specs } = project;
  const handlers: Handlers<typeof specRoutes> = {
    "GET /api/specs": {
      aliases: { framework: frameworkOf },
      handle: ({ query }) => listSpecs(specs, query),
    },
    "GET /api/specs/diagnostics": () => ({ diagnostics: specs.diagnostics(), ...indexingOf(project) }),
    "GET /api/specs/graph": () => specs.graph(),
    "POST /api/specs/impact"({ body }) {
      try {
        return specs.impact(body);
      } catch (error) {
        throw error instanceof KitError && error.code === "spec_not_found"
          ? notFoundYet(project, error)
          : error;
      }
    },
    "GET /api/specs/coverage": async ({ query: { feature, ...page } }) => ({
      ...pageCoverage(
        await specCoverage(project, feature === undefined ? {} : { features: [feature] }),
        page,
      ),
      ...indexingOf(project),
    }),
    "GET /api/specs/stale": async ({ query }) => ({
      ...pageStale(await staleSpecs(project), query),
      ...indexingOf(project),
    }),
    "POST /api/specs/validate": ({ body }) => {
      const diagnostics = validateBlocks(body.blocks);
      return { valid: diagnostics.every(({ severity }) => severity !== "error"), diagnostics };
    },
    "GET /api/specs/{id}": ({ segment }) => findSpec(project, segment("id", { maxBytes: maxIdBytes })),
  };
  return bindRoutes(specRoutes, handlers, guardProject(authorization));
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
