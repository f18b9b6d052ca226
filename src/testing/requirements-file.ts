/** A `requirements.md` of Kiro with one requirement and its criteria, the first of them in line 7. */
export function requirementsFile(title: string, criteria: readonly string[]): string {
  const list = criteria.map((text, at) => `${at + 1}. ${text}\n`);
  return `# Requirements\n\n## Requirement 1: ${title}\n\n#### Acceptance Criteria\n\n${list.join("")}`;
}
