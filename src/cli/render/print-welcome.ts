import { version } from "../../base/version.ts";
import type { Project } from "../../project/project.ts";
import type { Output } from "../output.ts";
import { safeLine } from "../text/safe-text.ts";
import { pickExamples } from "./pick-examples.ts";
import { count } from "./places.ts";

/** Says what is served and where, and three things to try on this very project. */
export function printWelcome(output: Output, url: string, project: Project): void {
  const { file, word } = pickExamples(project);
  const address = output.style(["bold", "cyan"], url);
  output.line(`kit ${version} serves ${output.style("bold", safeLine(project.name))} at ${address}`);
  const specs = count(project.specs.query({ limit: 1 }).total_count, "spec");
  const guidelines = count(project.guidelines.list({ limit: 1 }).total_count, "guideline");
  output.line(`${specs} and ${guidelines}`);
  output.line();
  output.line("Three things to try:");
  const tries: readonly Try[] = [
    file === undefined
      ? { what: "the guidelines of this project", how: `${url}/api/guidelines` }
      : {
          what: `which guidelines apply to ${file}`,
          how: `${url}/api/guidelines?file=${encodeURIComponent(file)}`,
        },
    word === undefined
      ? { what: "the specs of this project", how: `${url}/api/specs` }
      : { what: `what the specs say about "${word}"`, how: `${url}/api/specs?q=${encodeURIComponent(word)}` },
    file === undefined
      ? { what: "all routes", how: `${url}/openapi.json` }
      : { what: `what a change of ${file} affects`, how: toImpactCall(url, file) },
  ];
  for (const [index, { what, how }] of tries.entries()) {
    output.line(`  ${index + 1}. ${safeLine(what)}`);
    output.line(`     ${output.style("cyan", safeLine(how))}`);
  }
  output.line();
  output.line(output.style("dim", "Ctrl-C ends it."));
}

interface Try {
  readonly what: string;
  /** A URL, or a whole command line. */
  readonly how: string;
}

function toImpactCall(url: string, file: string): string {
  const body = JSON.stringify({ files: [file] }).replaceAll("'", "\\u0027");
  return `curl ${url}/api/specs/impact -H 'Content-Type: application/json' -d '${body}'`;
}
