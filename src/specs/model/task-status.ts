import type { TaskStatus } from "../../protocol/spec-block.ts";

/** What the character in a checkbox says. Whatever is neither done nor under way is open. */
export function taskStatusOf(state: string): TaskStatus {
  if (/^[xX✓✔√☑]$/u.test(state)) return "done";
  return state === "-" || state === "/" ? "in_progress" : "open";
}

/** The list marker and checkbox of a task with a status. */
export function taskMarker(status: unknown): string {
  return status === "done" ? "- [x]" : status === "in_progress" ? "- [-]" : "- [ ]";
}
