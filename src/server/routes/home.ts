import type { App } from "../../app/service/app.ts";
import type { Service } from "../../app/service/service.ts";
import { KitError } from "../../base/kit-error.ts";
import { version } from "../../base/own-package.ts";
import type { Project } from "../../project/project.ts";
import type { Principal } from "../../protocol/access.ts";
import { descriptionRoutes, homeRoutes } from "../../protocol/routes/project-routes.ts";
import type { Overview } from "../../protocol/service.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { toOpenApiDocument } from "../openapi-document.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { Reach } from "../service-context.ts";
import { indexingOf } from "./project.ts";

interface HomeOptions {
  readonly project: Project;
  readonly service: (Pick<Service, "problem" | "isLeaving"> & { readonly app: App }) | undefined;
  readonly authorization: Authorization;
  readonly reach: Reach;
}

/** `GET /`: what there is, for clients; browsers get the console. `GET /health` needs no key. */
export function bindHomeRoutes({ project, service, authorization, reach }: HomeOptions): readonly Route[] {
  const app = service?.app;
  const handlers: Handlers<typeof homeRoutes> = {
    async "GET /"({ principal }) {
      return overviewOf(project, app && (await permittedSources(app, { authorization, principal, reach })));
    },
    "GET /health"() {
      const problem = service?.problem();
      if (problem !== undefined) throw problem;
      if (service?.isLeaving === true) throw leaving();
      return { ok: true, name: "kit", version };
    },
    "GET /health/live": () => ({ ok: true, name: "kit", version }),
  };
  return bindRoutes(homeRoutes, handlers, guardProject(authorization));
}

function leaving(): KitError {
  return new KitError({
    code: "unavailable",
    message: "This server is about to end. Send new requests to another one.",
    meta: { retry_after_s: 1 },
  });
}

/** `GET /openapi.json`: the description of `routes` and of itself, built when first asked for. */
export function bindDescriptionRoutes(routes: readonly Route[]): readonly Route[] {
  let document: ReturnType<typeof toOpenApiDocument> | undefined;
  const handlers: Handlers<typeof descriptionRoutes> = {
    "GET /openapi.json"() {
      document ??= toOpenApiDocument([...routes, ...ownRoutes]);
      return document;
    },
  };
  const ownRoutes = bindRoutes(descriptionRoutes, handlers);
  return ownRoutes;
}

/** The reply of `GET /` in JSON, with links that lead to something in this very project. */
function overviewOf(project: Project, sources?: OverviewSources): Overview {
  const specs = project.specs.query({ limit: 1 });
  const guidelines = project.guidelines.list({ limit: 1 });
  const spec = project.specs.query({ spec_type: "requirement", limit: 1 }).specs[0] ?? specs.specs[0];
  const guideline = guidelines.guidelines[0];
  const file = exampleFile(project);
  const word = spec?.title.match(/\p{L}{4,}/gu)?.at(-1);
  return {
    name: "kit",
    version,
    project: project.name,
    specs: specs.total_count,
    specs_by_framework: specs.counts_by_framework,
    guidelines: guidelines.total_count,
    guidelines_by_source: guidelines.counts_by_source,
    ...indexingOf(project),
    ...sources,
    links: {
      health: "/health",
      openapi: "/openapi.json",
      specs: "/api/specs?limit=10",
      ...(word === undefined ? {} : { search: `/api/specs?q=${encode(word.toLowerCase())}` }),
      ...(spec === undefined ? {} : { spec: `/api/specs/${encodeURIComponent(spec.id.toWellFormed())}` }),
      diagnostics: "/api/specs/diagnostics",
      graph: "/api/specs/graph",
      guidelines: "/api/guidelines?limit=10",
      ...(file === undefined ? {} : { guidelines_for_file: `/api/guidelines?file=${encode(file)}` }),
      ...(guideline === undefined ? {} : { guideline: `/api/guidelines/${guideline.id}` }),
      ...(sources === undefined ? {} : serviceLinks),
    },
  };
}

const serviceLinks = {
  agents: "/agents",
  workflows: "/workflows",
  runs: "/runs?limit=10",
  dispatches: "/dispatches?limit=10",
};

type OverviewSources = Required<Pick<Overview, "agents" | "workflows">>;

/** The names of agents that can be reached, and of workflows, as far as who asks may see them. */
async function permittedSources(
  app: App,
  {
    authorization,
    principal,
    reach,
  }: {
    readonly authorization: Authorization;
    readonly principal: Principal | undefined;
    readonly reach: Reach;
  },
): Promise<OverviewSources> {
  const agents = app.agents().flatMap((agent) => (reach.serves(agent) ? [agent.name] : []));
  const workflows = app.workflows().map(({ name }) => name);
  return {
    agents: await authorization.permitted(agents, (agent) => ({ principal, action: "agent.list", agent })),
    workflows: await authorization.permitted(workflows, (workflow) => ({
      principal,
      action: "workflow.list",
      workflow,
    })),
  };
}

// A slash may stand in a query as it is.
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll("%2F", "/");
}

/** A file that a spec names, else a source file rather than a lock or a picture, where there is one. */
function exampleFile(project: Project): string | undefined {
  const { specs } = project.specs.query({ limit: 100 });
  const codeFile = specs.flatMap(({ metadata }) => metadata.code_refs ?? []).find(isSource);
  const files = project.files();
  return codeFile ?? files.find(isSource) ?? files[0];
}

function isSource(file: string): boolean {
  return /\.(?:tsx?|jsx?|mjs|py|go|rs|java|kt|cs|rb|php|swift|c|cpp)$/.test(file);
}
