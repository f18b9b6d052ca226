import { type Command, defineCommand } from "../command.ts";
import type { Check } from "../doctor/check.ts";
import type { Output, Style } from "../output.ts";
import { count } from "../render/places.ts";
import { pad } from "../text/display-width.ts";
import { safeLine } from "../text/safe-text.ts";
import { wrap } from "../text/wrap.ts";

export const doctor: Command = defineCommand({
  options: {},
  examples: ["kit doctor", "kit doctor --json"],
  details:
    "✗ marks what stops work, and makes the command end with 1; ! marks what works and is worth a look.",
  run: async (_, context) => {
    const { checkMachine } = await import("../doctor/check-machine.ts");
    const { checkProject } = await import("../doctor/check-project.ts");
    const checks = [...(await checkMachine()), ...(await checkProject(context))];
    const errors = checks.filter((check) => check.status === "error").length;
    if (context.json) context.output.json({ ok: errors === 0, checks });
    else printChecks(context.output, checks);
    return errors === 0 ? 0 : 1;
  },
});

const signs: Readonly<Record<Check["status"], readonly [sign: string, style: Style]>> = {
  ok: ["✓", "green"],
  warning: ["!", "yellow"],
  error: ["✗", "red"],
};

function printChecks(output: Output, checks: readonly Check[]): void {
  const width = Math.max(...checks.map((check) => check.name.length)) + 2;
  for (const { name, status, message, hint } of checks) {
    const [sign, style] = signs[status];
    const indent = " ".repeat(width + 2);
    const toLines = (text: string): readonly string[] =>
      wrap(safeLine(text), Math.max(30, output.width - width - 4));
    output.line(`${output.style(style, sign)} ${pad(name, width)}${toLines(message).join(`\n${indent}`)}`);
    if (hint === undefined) continue;
    for (const [index, line] of hint.split("\n").flatMap(toLines).entries()) {
      output.line(indent + output.style("dim", `${index === 0 ? "→" : " "} ${line}`));
    }
  }
  const bad = checks.filter((check) => check.status !== "ok");
  if (bad.length > 0) output.note(`${count(bad.length, "thing")} to look at.`);
  else output.note("All is well.");
}
