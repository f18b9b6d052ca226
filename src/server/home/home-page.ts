import { html, raw } from "hono/html";
import type { Overview } from "../../protocol/service.ts";
import { frameworkLabel, frameworkOf } from "../../specs/frameworks.ts";

type Markup = ReturnType<typeof html>;

/** The parts of the command on the page. */
export interface HomeExample {
  /** The origin of this server, as the reader's browser named it. */
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

/** The style of the start page; its digest stands in the page's content security policy. */
export const homeStyle = `
:root { color-scheme: light dark; --ink: #1d2433; --soft: #5b6475; --line: #e3e6ec; --back: #f7f8fa; --card: #fff; --link: #2450c5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7eaf0; --soft: #9aa4b5; --line: #2c3443; --back: #12161e; --card: #1a202b; --link: #8fb0ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 3.5rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -0.02em; overflow-wrap: anywhere; }
h1 small { font-size: 0.9rem; font-weight: 400; letter-spacing: 0; color: var(--soft); }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.05rem; }
p { margin: 0.5rem 0 0; color: var(--soft); }
a { color: var(--link); text-decoration: none; overflow-wrap: anywhere; }
a:hover, a:focus-visible { text-decoration: underline; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: 1rem; margin-top: 2rem; }
.card { padding: 1.1rem 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: 10px; }
.card strong { display: block; font-size: 1.75rem; line-height: 1.2; font-variant-numeric: tabular-nums; }
.card ul { margin: 0.6rem 0 0; padding: 0; list-style: none; color: var(--soft); font-size: 0.92rem; }
.card li { display: flex; justify-content: space-between; gap: 1rem; }
dl { margin: 0; border: 1px solid var(--line); border-radius: 10px; background: var(--card); }
dl div { padding: 0.7rem 1.25rem; }
dl div + div { border-top: 1px solid var(--line); }
dt { color: var(--soft); font-size: 0.92rem; }
dd { margin: 0; font: 0.92rem/1.5 ui-monospace, monospace; }
pre { margin: 0; padding: 0.9rem 1.25rem; overflow-x: auto; background: var(--card); border: 1px solid var(--line); border-radius: 10px; font: 0.88rem/1.6 ui-monospace, monospace; }
`;
