import type { App } from "../../app/service/app.ts";
import { webhooksWithoutSecret } from "../../app/sources/webhooks-without-secret.ts";
import { version } from "../../base/own-package.ts";
import type { Project } from "../../project/project.ts";
import { safeLine } from "../text/safe-text.ts";
import type { Output } from "./output.ts";
import { count } from "./table.ts";

export interface Welcome {
  readonly url: string;
  /** Whether the usual port is taken, so that this is another one. */
  readonly isSubstitute: boolean;
  /** Whether a browser finds kit's page there. */
  readonly hasPage: boolean;
  readonly project: Project;
  /** The served agents; undefined if the server serves none. */
  readonly app: App | undefined;
  /** Whether requests reach agents whose files declare no triggers, here and under `kit start`. */
  readonly undeclared: Undeclared;
  /** Whether requests need one of the configured keys. */
  readonly needsKey: boolean;
  /** The agent of the example commands; undefined where no agent is served. */
  readonly isolation: string | undefined;
  /** Where accepted work is kept; undefined where no agent is served. */
  readonly engine: string | undefined;
}

/** `served` by this server; `dev_only` while this is `kit dev`; or `unserved`. */
export type Undeclared = "served" | "dev_only" | "unserved";

/** Prints the address of a server that serves MCP alone, and how a client adds it. */
export function printEndpoint(output: Output, address: string, needsKey: boolean): void {
  const key = needsKey ? ' --header "Authorization: Bearer <key>"' : "";
  output.line(`MCP over HTTP at ${output.style(["bold", "cyan"], address)}`);
  output.line(`Claude Code: claude mcp add --transport http kit ${address}${key}`);
}

/** Prints what is served and where, what could not be loaded, and three things to try on this project. */
export function printWelcome(output: Output, welcome: Welcome): void {
  const { url, isSubstitute, hasPage, project, app, undeclared, needsKey, isolation, engine } = welcome;
  output.line(`${hasPage ? "Open" : "At"} ${output.style(["bold", "cyan"], url)}`);
  if (isSubstitute) output.line("(Port 2024 is taken, so it is another one.)");
  output.line(
    `kit ${version} serves ${output.style("bold", safeLine(project.name))}: ${contentsOf(project, app)}`,
  );
  if (project.indexing() !== undefined) output.line(output.style("dim", indexingText));
  for (const text of [engine, isolation])
    if (text !== undefined) output.line(output.style("dim", safeLine(text)));
  for (const { path, message } of app?.problems() ?? []) {
    output.note(`${output.noteStyle("red", "error:")} ${safeLine(path)}: ${safeLine(message)}`);
  }
  for (const warning of app === undefined ? [] : secretWarnings(app)) {
    output.note(`${output.noteStyle("yellow", "warning:")} ${safeLine(warning)}`);
  }
  const hidden =
    undeclared === "served"
      ? []
      : (app?.agents() ?? []).flatMap(({ name, triggers }) => (triggers.webhook ? [] : [name]));
  if (hidden.length > 0) {
    output.note(`${output.noteStyle("yellow", "note:")} ${safeLine(reachOf(hidden, undeclared))}`);
  }
  output.line();
  output.line("Three things to try:");
  if (needsKey) output.line("  (with a key, as all requests: -H 'Authorization: Bearer <key>')");
  for (const [index, { purpose, how }] of triesOf(url, project, inviting(app, hidden)).entries()) {
    output.line(`  ${index + 1}. ${safeLine(purpose)}`);
    output.line(`     ${output.style("cyan", safeLine(how))}`);
  }
  output.line();
  output.line(output.style("dim", `Ctrl-C ends it, and so does 'kit stop' (process ${process.pid}).`));
}

const indexingText = "The project is still being indexed: answers that may be incomplete say so (indexing).";

/** The most names on a line. */
const maxNames = 5;

function reachOf(names: readonly string[], undeclared: Undeclared): string {
  const rest = names.length - maxNames;
  const list = `${names.slice(0, maxNames).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  const where =
    undeclared === "dev_only"
      ? "served because this is kit dev, not by kit start"
      : "not served over HTTP (404 agent_not_webhook)";
  return `${list}: ${where}. To serve one: export const triggers = { webhook: true } in its file.`;
}

/** The agent for the example: one that requests reach. */
function inviting(app: App | undefined, hidden: readonly string[]): string | undefined {
  return app?.agents().find(({ name }) => !hidden.includes(name))?.name;
}

function contentsOf(project: Project, app: App | undefined): string {
  const parts = [
    count(project.specs.query({ limit: 1 }).total_count, "spec"),
    count(project.guidelines.list({ limit: 1 }).total_count, "guideline"),
  ];
  const served = [
    [app?.agents().length ?? 0, "agent"],
    [app?.workflows().length ?? 0, "workflow"],
    [app?.webhooks().length ?? 0, "webhook"],
  ] as const;
  for (const [number, noun] of served) if (number > 0) parts.push(count(number, noun));
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

interface Try {
  readonly purpose: string;
  /** A URL, or a whole command line. */
  readonly how: string;
}

function triesOf(url: string, project: Project, agent: string | undefined): readonly Try[] {
  const { file, word } = pickExamples(project);
  const rules =
    file === undefined
      ? { purpose: "the guidelines of this project", how: `${url}/api/guidelines` }
      : {
          purpose: `which guidelines apply to ${file}`,
          how: `${url}/api/guidelines?file=${encodeURIComponent(file)}`,
        };
  const specs =
    word === undefined
      ? { purpose: "the specs of this project", how: `${url}/api/specs` }
      : {
          purpose: `what the specs say about "${word}"`,
          how: `${url}/api/specs?q=${encodeURIComponent(word)}`,
        };
  if (agent !== undefined) {
    const message = file === undefined ? "Which rules are there?" : `Which rules apply to ${file}?`;
    const prompt = { message };
    return [
      { purpose: `ask the agent ${agent}`, how: toCall(`${url}/agents/${agent}/1`, prompt) },
      {
        purpose: "leave it a message and read the answer later: accepted work survives restarts",
        how: toCall(`${url}/agents/${agent}/1/dispatch`, { input: message }),
      },
      word === undefined ? rules : specs,
    ];
  }
  return [
    rules,
    specs,
    file === undefined
      ? { purpose: "all routes", how: `${url}/openapi.json` }
      : {
          purpose: `what a change of ${file} affects`,
          how: toCall(`${url}/api/specs/impact`, { files: [file] }),
        },
  ];
}

function toCall(address: string, body: unknown): string {
  const json = JSON.stringify(body).replaceAll("'", "\\u0027");
  return `curl ${address} -H 'Content-Type: application/json' -d '${json}'`;
}

/** Examples from this project; fields are absent where it has none. */
interface Examples {
  /** A source file, one that a spec names where there is one. */
  readonly file?: string | undefined;
  /** A word for which a search finds a spec. */
  readonly word?: string | undefined;
}

/** The most specs to read for an example. */
const sampleSize = 200;
const sourceFile = /\.(?:[cm]?[jt]sx?|py|go|rs|java|kt|cs|rb|php|swift|c|cc|cpp|h|vue|svelte)$/;

function pickExamples(project: Project): Examples {
  const { specs } = project.specs.query({ limit: sampleSize });
  const references = specs.flatMap((spec) => spec.metadata.code_refs ?? []);
  const files = project.files();
  const file =
    references.find((path) => sourceFile.test(path)) ??
    files.find((path) => path.startsWith("src/") && sourceFile.test(path)) ??
    files.find((path) => sourceFile.test(path)) ??
    files[0];
  const titles = specs.filter((spec) => spec.spec_type === "requirement").concat(specs);
  const words = titles.flatMap((spec) => spec.title.toLowerCase().match(/\p{L}{5,}/gu) ?? []);
  const word = words
    .filter((candidate) => !commonWords.has(candidate))
    .slice(0, 10)
    .find((candidate) => project.specs.query({ q: candidate, limit: 1 }).total_count > 0);
  return { file, word };
}

/** Words of headings that are useless as search examples. */
const commonWords = new Set([
  "requirement",
  "requirements",
  "overview",
  "introduction",
  "story",
  "user",
  "cursor",
  "rule",
]);

/** A warning for each webhook that refuses deliveries because its secret is missing. */
export function secretWarnings(app: Pick<App, "webhooks" | "env">): readonly string[] {
  return webhooksWithoutSecret(app.webhooks(), app.env).map(
    ({ path }) =>
      `${path}: It has no secret, and refuses every delivery until the environment variable that it reads is set.`,
  );
}
