import { createHash } from "node:crypto";
import type { App } from "../../app/service/app.ts";
import type { Project } from "../../project/project.ts";
import { overviewSchema } from "../../protocol/service.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { homePage } from "../home/home-page.ts";
import { homeStyle } from "../home/home-style.ts";
import { exampleFile, overviewOf, permittedSources } from "../home/overview.ts";
import type { Reach } from "../reach.ts";
import { htmlReply } from "../reply.ts";
import { defineRoute, type Route } from "../route.ts";

interface HomeOptions {
  readonly project: Project;
  readonly app: App | undefined;
  readonly authorization: Authorization;
  readonly reach: Reach;
}

/** `GET /`: a page for people; JSON for clients that ask for JSON and not for HTML. */
export function homeRoutes({ project, app, authorization, reach }: HomeOptions): readonly Route[] {
  const style = createHash("sha256").update(homeStyle).digest("base64");
  const policy = `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
  return [
    defineRoute({
      operation: "getOverview",
      method: "GET",
      path: "/",
      summary: "What this server knows, and where to go on",
      description: "A page for browsers; JSON with `Accept: application/json`.",
      tag: "service",
      reply: overviewSchema,
      hasPage: true,
      guard: guardProject(authorization),
      handle: async ({ accept, url, principal }) => {
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
    }),
  ];
}

function wantsJson(accept: string): boolean {
  return accept.includes("application/json") && !accept.includes("text/html");
}
