import type { Diagnostic, DiagnosticPage, DiagnosticQuery } from "../../protocol/diagnostic.ts";
import type { ProjectSpecs } from "../project.ts";
import { pageList } from "./page-list.ts";

/** The diagnostics that pass the filters of a query: one page with `limit` or `cursor`, else all. */
export function pageDiagnostics(
  specs: Pick<ProjectSpecs, "diagnostics" | "frameworkOf">,
  query: DiagnosticQuery,
): DiagnosticPage {
  const { limit, cursor, ...filters } = query;
  const { severity, rule, path, framework, id } = filters;
  const all = specs.diagnostics();
  const counts = { error: 0, warning: 0 };
  const counts_by_rule: Record<string, number> = {};
  const counts_by_framework: Record<string, number> = {};
  const frameworks = new Map<string, string | undefined>();
  const frameworkOf = (file: string): string | undefined => {
    if (!frameworks.has(file)) frameworks.set(file, specs.frameworkOf(file));
    return frameworks.get(file);
  };
  const isInside = (file: string): boolean =>
    path === undefined || file === path || file.startsWith(`${path}/`);
  const found: Diagnostic[] = [];
  for (const one of all) {
    const own = frameworkOf(one.path);
    counts[one.severity] += 1;
    counts_by_rule[one.rule] = (counts_by_rule[one.rule] ?? 0) + 1;
    if (own !== undefined) counts_by_framework[own] = (counts_by_framework[own] ?? 0) + 1;
    const isFound =
      (severity === undefined || one.severity === severity) &&
      (rule === undefined || one.rule === rule) &&
      (id === undefined || one.id === id) &&
      (framework === undefined || own === framework) &&
      isInside(one.path);
    if (isFound) found.push(one);
  }
  const totals = { counts_by_severity: counts, counts_by_rule, counts_by_framework };
  if (limit === undefined && cursor === undefined)
    return { diagnostics: found, total_count: found.length, ...totals };
  const keyOf = (one: Diagnostic): string =>
    JSON.stringify([one.path, one.line, one.rule, one.id, one.message]);
  const { items, ...rest } = pageList(found, { limit, cursor }, { about: filters, keyOf });
  return { diagnostics: items, ...rest, ...totals };
}
