import type { Finding } from "../../protocol/service.ts";
import type { Output, Style } from "../print/output.ts";
import { count } from "../print/table.ts";
import { pad, safeLine, wrap } from "../text/safe-text.ts";

/** One result of the doctor. */
export type Check = Finding;

const signs: Readonly<Record<Check["status"], readonly [sign: string, style: Style]>> = {
  ok: ["✓", "green"],
  warning: ["!", "yellow"],
  error: ["✗", "red"],
};

/** One line per check, with its advice below, and the number of problems. */
export function printChecks(output: Output, checks: readonly Check[]): void {
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
  const findings = checks.filter((check) => check.status !== "ok");
  if (findings.length > 0) output.note(`${count(findings.length, "problem")} found.`);
  else output.note("All is well.");
}
