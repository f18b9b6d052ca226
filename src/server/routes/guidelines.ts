import { KitError } from "../../base/kit-error.ts";
import { conversionFormatOf, sourceTypeOf } from "../../guidelines/convert/source-aliases.ts";
import type { Project } from "../../project/project.ts";
import { guidelineRoutes } from "../../protocol/routes/project-routes.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { notFoundYet } from "../not-indexed-yet.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";

/** `/api/guidelines`: list, one, convert, export. */
export function bindGuidelineRoutes(project: Project, authorization: Authorization): readonly Route[] {
  const { guidelines } = project;
  const handlers: Handlers<typeof guidelineRoutes> = {
    "GET /api/guidelines": {
      aliases: { source: sourceTypeOf },
      async handle({ query }) {
        if (query.file !== undefined) await project.ready(query.file);
        return guidelines.list(query);
      },
    },
    "GET /api/guidelines/{id}": ({ segment }) => {
      const guideline = guidelines.get(segment("id"));
      if (guideline !== undefined) return guideline;
      const message = "There is no guideline with this id.";
      throw notFoundYet(project, new KitError({ code: "guideline_not_found", message }));
    },
    "POST /api/guidelines/convert": {
      aliases: { format: conversionFormatOf },
      async handle({ body, principal, itemAction: action }) {
        if (body.preview === false) await authorization.check({ principal, action });
        return guidelines.convert(body);
      },
    },
    "POST /api/guidelines/export": {
      aliases: { format: conversionFormatOf },
      handle: ({ body }) => guidelines.export(body),
    },
  };
  return bindRoutes(guidelineRoutes, handlers, guardProject(authorization));
}
