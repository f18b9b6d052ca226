import { html, raw } from "hono/html";
import type { Overview } from "../../protocol/service.ts";
import { frameworkLabel, frameworkOf } from "../../specs/frameworks.ts";
import { homeStyle } from "./home-style.ts";

type Markup = ReturnType<typeof html>;

/** What the command on the page is made of. */
export interface HomeExample {
  /** Of this server, as the reader's browser named it. */
  readonly origin: string;
  readonly file: string;
  /** An agent that `kit start` serves, too; undefined where there is none. */
  readonly agent: string | undefined;
}

/** The start page: what this server is, what it knows, and what to try. Every value is escaped. */
export async function homePage(overview: Overview, example: HomeExample): Promise<string> {
  const { links, project } = overview;
  const page = await html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>kit · ${project}</title>
<style>${raw(homeStyle)}</style>
</head>
<body>
<main>
<h1>${project} <small>kit ${overview.version}</small></h1>
<p>The specifications and coding guidelines of this repository, read in place and served as JSON.</p>
<div class="cards">
${card("spec blocks", overview.specs, labelled(overview.specs_by_framework, specLabel))}
${card("guidelines", overview.guidelines, labelled(overview.guidelines_by_source, sourceLabel))}
${overview.agents === undefined ? "" : card("agents", overview.agents.length, overview.agents.map(named))}
${overview.workflows === undefined ? "" : card("workflows", overview.workflows.length, overview.workflows.map(named))}
</div>
<h2>Try</h2>
<dl>
${tryThis("Search the specs, best match first", links.search ?? links.specs)}
${tryThis("Which guidelines apply to a file", links.guidelines_for_file ?? links.guidelines)}
${tryThis("One spec block, with its file and lines", links.spec)}
${tryThis("What is wrong with the specs", links.diagnostics)}
${tryThis("How specs, code and tests hang together", links.graph)}
${tryThis("The agents, with their files", links.agents)}
${tryThis("What workflows did", links.runs)}
${tryThis("Every route, as OpenAPI 3.1", links.openapi)}
</dl>
${example.agent === undefined ? "" : askAgent(example.agent, example.origin)}
<h2>What does a change affect?</h2>
<pre>curl -X POST -H 'Content-Type: application/json' \\
  -d '${inSingleQuotes(JSON.stringify({ files: [example.file] }))}' \\
  ${example.origin}/api/specs/impact</pre>
<p>The same answers come from the command line (<code>kit specs impact --since main</code>) and, for
coding agents, from <code>kit mcp</code>.</p>
</main>
</body>
</html>
`;
  return page.toString();
}

function askAgent(name: string, origin: string): Markup {
  return html`<h2>Ask an agent</h2>
<pre>curl -N -H 'Content-Type: application/json' -H 'Accept: text/event-stream' \\
  -d '{"message": "What is this repository about?"}' \\
  ${origin}/agents/${encodeURIComponent(name)}/me</pre>`;
}

function named(name: string): Markup {
  return html`<li><span>${name}</span></li>`;
}

function inSingleQuotes(text: string): string {
  return text.replaceAll("'", "'\\''");
}

function card(title: string, count: number, parts: readonly Markup[]): Markup {
  return html`<section class="card"><strong>${count.toLocaleString("en")}</strong>${title}<ul>${parts}</ul></section>`;
}

function labelled(counts: Overview["specs_by_framework"], label: (key: string) => string): readonly Markup[] {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(
      ([key, count]) => html`<li><span>${label(key)}</span><span>${count.toLocaleString("en")}</span></li>`,
    );
}

function tryThis(what: string, href: string | undefined): Markup | "" {
  if (href === undefined) return "";
  return html`<div><dt>${what}</dt><dd><a href="${href}">${decodeURI(href)}</a></dd></div>`;
}

function specLabel(key: string): string {
  const framework = frameworkOf(key);
  return framework === undefined ? key : frameworkLabel(framework);
}

function sourceLabel(key: string): string {
  const labels: ReadonlyMap<string, string> = new Map([
    ["steering", "Kiro steering"],
    ["agents", "AGENTS.md"],
    ["sample", "Samples"],
  ]);
  return labels.get(key) ?? specLabel(key);
}
