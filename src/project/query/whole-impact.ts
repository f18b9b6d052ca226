import type { Impact, ImpactRequest } from "../../protocol/spec-query.ts";
import type { ProjectSpecs } from "../project.ts";

/** All pages of an impact as one, for answers that end elsewhere than a page does. */
export function wholeImpact(specs: Pick<ProjectSpecs, "impact">, request: ImpactRequest): Impact {
  const { next_cursor, ...first } = specs.impact({ ...request, limit: 1_000 });
  const affected = [...first.affected];
  for (let cursor = next_cursor; cursor !== undefined; ) {
    const page = specs.impact({ ...request, limit: 1_000, cursor });
    affected.push(...page.affected);
    cursor = page.next_cursor;
  }
  return { ...first, affected };
}
