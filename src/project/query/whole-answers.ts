import type { Impact, ImpactRequest, SpecPage, SpecQuery } from "../../protocol/spec-query.ts";
import type { ProjectSpecs } from "../project.ts";

/**
 * A page for lists: leaves out the rules of instruction files (CLAUDE.md, Cursor's rules) where the project has other specs,
 * unless a search, a filter or `rules` asks for them. `rules_left_out` is their number.
 */
export function listSpecs(specs: Pick<ProjectSpecs, "query">, query: SpecQuery): SpecPage {
  const { q, framework, spec_type, path, tag, rules } = query;
  if ((q ?? framework ?? spec_type ?? path ?? tag ?? rules) !== undefined) return specs.query(query);
  const { cursor: _, ...first } = query;
  const others = specs.query({ ...first, rules: false, limit: 1 }).total_count;
  if (others === 0) return specs.query(query);
  const left = specs.query({ ...first, limit: 1 }).total_count - others;
  const page = specs.query({ ...query, rules: false });
  return left === 0 ? page : { ...page, rules_left_out: left };
}

/** All pages of an impact as one, for callers that cut the answer elsewhere. */
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
