import type { App } from "../../app/service/app.ts";
import type { Service } from "../../app/service/service.ts";
import { KitError } from "../../base/kit-error.ts";
import { version } from "../../base/own-package.ts";
import type { Project } from "../../project/project.ts";
import { descriptionRoutes, homeRoutes } from "../../protocol/routes/project-routes.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { overviewOf, permittedSources } from "../home/overview.ts";
import { toOpenApiDocument } from "../openapi-document.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { Reach } from "../service-context.ts";

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
      document ??= toOpenApiDocument([...routes, ...own]);
      return document;
    },
  };
  const own = bindRoutes(descriptionRoutes, handlers);
  return own;
}
