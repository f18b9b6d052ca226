/**
 * Texts of which whatever matches a pattern holds at least one, so that other files need not cross the network; none
 * where that is not plain to see. The pattern is of RE2 syntax; groups, classes and counts are not looked into.
 */
export function textsOf(pattern: string, ignoreCase: boolean): readonly string[] {
  const hasMore = /[()[\]{}\n\r\uFFFD]/.test(pattern);
  if (hasMore || /\\[A-Za-z0-9]/.test(pattern.replaceAll(/\\[wWdDsSbB]/g, "."))) return [];
  const alternatives: string[][] = [[]];
  for (const unit of pattern.match(/\\?./gsu) ?? []) {
    if (unit === "|") alternatives.push([]);
    else alternatives.at(-1)?.push(unit);
  }
  const texts = alternatives.map((units) => longestOf(units, ignoreCase));
  return texts.includes("") ? [] : texts;
}

function longestOf(units: readonly string[], ignoreCase: boolean): string {
  const runs: string[] = [""];
  for (const [index, unit] of units.entries()) {
    const next = units[index + 1];
    const literal = literalOf(unit, ignoreCase);
    if (literal === undefined || next === "?" || next === "*") runs.push("");
    else runs.push(`${runs.pop()}${literal}`);
  }
  return runs.reduce((longest, run) => (run.length > longest.length ? run : longest), "");
}

function literalOf(unit: string, ignoreCase: boolean): string | undefined {
  const isEscaped = unit.length > 1 && unit.startsWith("\\");
  if (isEscaped ? /\w/.test(unit) : /[.*+?^$\\]/.test(unit)) return undefined;
  const literal = isEscaped ? unit.slice(1) : unit;
  // In any case, k is also the Kelvin sign, and s a long one.
  return ignoreCase && /[ks\u0080-\u{10FFFF}]/iu.test(literal) ? undefined : literal;
}
