import type { Verdict } from "../../protocol/verdict.ts";
import type { PlannedTask } from "./plan-tasks.ts";

/** The most characters of the verdict's reasons in a prompt. */
const mostOfReasons = 8_000;

/** The first prompt of a task. `testsBy` says that another agent has written the tests. */
export function taskPrompt(task: PlannedTask, { hasTests }: { readonly hasTests: boolean }): string {
  const tests = hasTests
    ? "Another agent has written the tests of these criteria. Make them pass; your changes of test files are undone."
    : 'Write a test for each criterion, with its key in the test\'s title, such as "checkout#1.2: …". kit runs each test with your change, without it, and with faults put into your change: it must pass, fail, and fail by an assertion.';
  return [
    ...describe(task),
    ...(task.criteria.length === 0 ? [] : [tests]),
    "Work in the current folder, a checkout of the repository. Do not commit, and do not tick the task: kit runs the tests in checkouts of its own, then ticks and commits. Your changes of specs and of kit's configuration are undone.",
  ].join("\n\n");
}

/** The prompt of the agent that only writes the tests of a task. */
export function testsPrompt(task: PlannedTask): string {
  return [
    ...describe(task),
    'Write only the tests of these criteria, one or more for each, with its key in the test\'s title, such as "checkout#1.2: …". Another agent writes the code later. Test what the criteria say, by assertions about results, not how the code may look. Your changes of other files are undone.',
  ].join("\n\n");
}

function describe({ number, title, text, path, line, criteria }: PlannedTask): readonly string[] {
  const rest = text.trim() === title ? "" : `\n\n${text.trim()}`;
  return [
    `Do this task of the spec (${path}:${line}):\n\n${number === title ? "" : `${number}. `}${title}${rest}`,
    ...(criteria.length === 0
      ? []
      : [
          `Its acceptance criteria:\n${criteria
            .map((criterion) => `- ${criterion.id}: ${criterion.text} (${criterion.path}:${criterion.line})`)
            .join("\n")}`,
        ]),
  ];
}

/** The next prompt after a refusal: what the checks say. */
export function refusalPrompt({ reasons }: Verdict, undone: readonly string[]): string {
  return [
    "The task is not done. kit ran the tests in checkouts of its own, and says:",
    reasonLines(reasons),
    ...(undone.length === 0
      ? []
      : [`These files are not yours to change, and are as before again: ${undone.slice(0, 50).join(", ")}.`]),
    "Mend this, in the same folder.",
  ].join("\n\n");
}

/** The next prompt after a person has said no. */
export function deniedPrompt(comment: string): string {
  return `A person has looked at your change, and does not accept it yet:\n\n${comment}\n\nMend this, in the same folder.`;
}

/** The next prompt after another task has changed the same lines. */
export function conflictPrompt(task: PlannedTask, conflicts: readonly string[]): string {
  return `Meanwhile, other work has changed the same lines as yours: ${conflicts.slice(0, 50).join(", ")}. The folder has the new state now, with the rest of your change. Do what is missing again:\n\n${describe(task).join("\n\n")}`;
}

/** The reasons of a verdict, a line each. */
export function reasonLines(reasons: Verdict["reasons"]): string {
  const lines = reasons.map(({ check, message, path, line }) => {
    const place = path === undefined ? "" : ` (${path}${line === undefined ? "" : `:${line}`})`;
    return `- [${check}] ${message.trim()}${place}`;
  });
  const text = lines.join("\n");
  return text.length <= mostOfReasons ? text : `${text.slice(0, mostOfReasons)} …`;
}
