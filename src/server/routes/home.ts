import { createHash } from "node:crypto";
import type { App } from "../../app/service/app.ts";
import type { Service } from "../../app/service/service.ts";
import { version } from "../../base/version.ts";
import type { Project } from "../../project/project.ts";
import { descriptionRoutes, homeRoutes } from "../../protocol/routes/project-routes.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { homePage, homeStyle } from "../home/home-page.ts";
import { exampleFile, overviewOf, permittedSources } from "../home/overview.ts";
import { toOpenApiDocument } from "../openapi-document.ts";
import { htmlReply } from "../reply.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { Reach } from "../service-context.ts";

interface HomeOptions {
  readonly project: Project;
  readonly service: (Pick<Service, "problem"> & { readonly app: App }) | undefined;
  readonly authorization: Authorization;
  readonly reach: Reach;
}

/** `GET /`: a page for people; JSON for clients that ask for JSON and not for HTML. `GET /health` needs no key. */
export function bindHomeRoutes({ project, service, authorization, reach }: HomeOptions): readonly Route[] {
  const app = service?.app;
  const style = createHash("sha256").update(homeStyle).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  const handlers: Handlers<typeof homeRoutes> = {
    async "GET /"({ accept, url, principal }) {
      const sources = app && (await permittedSources(app, { authorization, principal, reach }));
      const overview = overviewOf(project, sources);
      if (wantsJson(accept)) return overview;
      const example = {
        origin: new URL(url).origin,
        file: exampleFile(project) ?? "README.md",
        agent: overview.agents?.find((name) =>
          app?.agents().some((one) => one.name === name && !reach.isDevOnly(one)),
        ),
      };
      return htmlReply(await homePage(overview, example), policy);
    },
    "GET /health"() {
      const problem = service?.problem();
      if (problem !== undefined) throw problem;
      return { ok: true, name: "kit", version };
    },
  };
  return bindRoutes(homeRoutes, handlers, guardProject(authorization));
}

function wantsJson(accept: string): boolean {
  return accept.includes("application/json") && !accept.includes("text/html");
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
