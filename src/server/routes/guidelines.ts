import { KitError } from "../../base/kit-error.ts";
import { conversionFormatOf, sourceTypeOf } from "../../guidelines/convert/source-aliases.ts";
import type { Project } from "../../project/project.ts";
import {
  conversionResultSchema,
  exportResultSchema,
  guidelineListSchema,
  guidelineSchema,
} from "../../protocol/guideline.ts";
import {
  convertRequestSchema,
  exportRequestSchema,
  guidelineQuerySchema,
} from "../../protocol/guideline-query.ts";
import { type Authorization, guardProject } from "../access/authorize.ts";
import { notFoundYet } from "../not-indexed-yet.ts";
import { defineRoute, type Route } from "../route.ts";

const tag = "guidelines";

/** `/api/guidelines`: list, one, convert, export. */
export function guidelineRoutes(project: Project, authorization: Authorization): readonly Route[] {
  const { guidelines } = project;
  const guard = guardProject(authorization);
  return [
    defineRoute({
      operation: "listGuidelines",
      method: "GET",
      path: "/api/guidelines",
      summary: "List guidelines",
      description:
        "Filters combine with AND. `source` also takes the names kiro, cursor and claude. A file with several names (links) comes once, with its `aliases`. In order of file, then position. With `file` the list is whole although the project is still being indexed.",
      tag,
      guard,
      query: guidelineQuerySchema,
      aliases: { source: sourceTypeOf },
      reply: guidelineListSchema,
      async handle({ query }) {
        if (query.file !== undefined) await project.ready(query.file);
        return guidelines.list(query);
      },
    }),
    defineRoute({
      operation: "getGuideline",
      method: "GET",
      path: "/api/guidelines/{id}",
      summary: "One guideline",
      tag,
      guard,
      parameters: { id: "The guideline's id: 16 hex digits." },
      reply: guidelineSchema,
      errors: ["guideline_not_found", "unavailable"],
      handle: ({ segment }) => {
        const guideline = guidelines.get(segment("id"));
        if (guideline !== undefined) return guideline;
        const message = "There is no guideline with this id.";
        throw notFoundYet(project, new KitError({ code: "guideline_not_found", message }));
      },
    }),
    defineRoute({
      operation: "convertGuideline",
      method: "POST",
      path: "/api/guidelines/convert",
      summary: "Convert a guideline to another format",
      description:
        "Writes nothing unless `preview` is false. `format` also takes the names kiro, cursor and claude.",
      tag,
      guard,
      body: convertRequestSchema,
      aliases: { format: conversionFormatOf },
      reply: conversionResultSchema,
      errors: ["guideline_not_found", "conflict"],
      async handle({ body, principal }) {
        if (body.preview === false) await authorization.check({ principal, action: "project.write" });
        return guidelines.convert(body);
      },
    }),
    defineRoute({
      operation: "exportGuidelines",
      method: "POST",
      path: "/api/guidelines/export",
      summary: "All guidelines as one file",
      description: "`format` also takes the names cursor and claude. Writes nothing.",
      tag,
      guard,
      body: exportRequestSchema,
      aliases: { format: conversionFormatOf },
      reply: exportResultSchema,
      handle: ({ body }) => guidelines.export(body),
    }),
  ];
}
