import {
  McpServer,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { version } from "../../base/own-package.ts";
import { percentDecoded } from "../../base/percent.ts";
import type { Project } from "../../project/project.ts";
import { cutMark, cutText, excerptOf, maxAnswerLength } from "./bounds.ts";
import { addTool, type ReadTool, type ToolOptions } from "./read-tool.ts";
import { guidelineConvertTool } from "./tools/guideline-convert.ts";
import { guidelineGetTool } from "./tools/guideline-get.ts";
import { guidelinesForTool } from "./tools/guidelines-for.ts";
import { guidelinesSearchTool } from "./tools/guidelines-search.ts";
import { specCoverageTool } from "./tools/spec-coverage.ts";
import { specGetTool } from "./tools/spec-get.ts";
import { specImpactTool } from "./tools/spec-impact.ts";
import { specSearchTool } from "./tools/spec-search.ts";
import { specStaleTool } from "./tools/spec-stale.ts";
import { type VerifyCall, verifySpecsTool } from "./tools/verify-specs.ts";

/** The text about the read-only tools that a client passes to its model. */
export const instructions =
  "kit knows the specifications and coding guidelines of this repository. Before you write or change a file, ask guidelines_for which rules apply to it. Ask spec_search what a feature must do. Before you finish, ask spec_impact what your change affects and which tests to run. Answers name file and line. If an answer ends in [cut: …], call again with its cursor for the rest.";

const verifyInstruction = "Before you say that a task is done, call verify_specs, and mend what it refuses.";

export interface ProjectServerOptions extends ToolOptions {
  /** Adds the tool `verify_specs`, which runs the project's tests. Default: the server has no such tool. */
  readonly verify?: VerifyCall | undefined;
}

/**
 * Creates an MCP server with read-only tools for a project's specs, guidelines and impact and, with `verify`, one that judges a change.
 *
 * @example
 * ```ts
 * import { openProject } from "kit";
 * import { createMcpServer } from "kit/mcp";
 *
 * const server = createMcpServer(await openProject({ root: "." }));
 * export default server; // connect it to a transport of the MCP package
 * ```
 */
export function createMcpServer(
  project: Project,
  { verify, ...options }: ProjectServerOptions = {},
): McpServer {
  const server = new McpServer(
    { name: "kit", title: `kit: ${project.name}`, version },
    {
      instructions: verify === undefined ? instructions : `${instructions} ${verifyInstruction}`,
      capabilities: { tools: {}, resources: {} },
      maxToolInputElements: 5_000,
    },
  );
  useProjectTools(project, options, (tool, how) => addTool(server, tool, how));
  // A verdict waits until the index is current.
  if (verify !== undefined) addTool(server, verifySpecsTool(verify), options);
  addResources(server, project);
  return server;
}

/** Passes each read-only tool of a project on, with its options. */
export function useProjectTools(
  project: Project,
  options: ToolOptions,
  use: <Input, Output extends object>(tool: ReadTool<Input, Output>, options: ToolOptions) => void,
): void {
  const { specs, guidelines } = project;
  const withProgress = { ...options, indexing: project.indexing };
  // This tool waits until the guidelines of the file are indexed, so its answers are always complete.
  use(guidelinesForTool(project), options);
  use(guidelinesSearchTool(guidelines), withProgress);
  use(guidelineGetTool(guidelines), withProgress);
  use(guidelineConvertTool(guidelines), withProgress);
  use(specSearchTool(specs), withProgress);
  use(specGetTool(specs), withProgress);
  use(specImpactTool(project), withProgress);
  use(specCoverageTool(project), withProgress);
  use(specStaleTool(project), withProgress);
}

/** How many specs and how many guidelines are listed: there may be a hundred thousand. */
const maxListed = 100;

/**
 * Adds `kit://specs/{id}` and `kit://guidelines/{id}`, for clients in which people attach resources to a prompt. The first ones are
 * listed; ids of the others are completed from words, and found by the search tools.
 */
export function addResources(
  server: McpServer,
  { specs, guidelines }: Pick<Project, "specs" | "guidelines">,
): void {
  const mimeType = "text/markdown";
  const toResource = (kind: string, { id, title }: { readonly id: string; readonly title: string }) => ({
    ...{ uri: `kit://${kind}/${encodeURIComponent(id)}`, name: id, title: excerptOf(title, 200), mimeType },
  });
  const findSpecs = (q?: string) =>
    specs.query({ ...(q === undefined || q.trim() === "" ? {} : { q }), limit: maxListed }).specs;
  const findGuidelines = (q?: string) =>
    guidelines.list({ ...(q === undefined || q.trim() === "" ? {} : { q }), limit: maxListed }).guidelines;
  server.registerResource(
    "spec",
    new ResourceTemplate("kit://specs/{id}", {
      list: () => ({ resources: findSpecs().map((spec) => toResource("specs", spec)) }),
      complete: { id: (words) => findSpecs(words.slice(0, 1_000)).map(({ id }) => id) },
    }),
    { title: "One spec block", description: "Its text, by id.", mimeType },
    (uri, { id }) => textOf(uri, specs.get(idOf(id)), "spec_get"),
  );
  server.registerResource(
    "guideline",
    new ResourceTemplate("kit://guidelines/{id}", {
      list: () => ({ resources: findGuidelines().map((one) => toResource("guidelines", one)) }),
      complete: { id: (words) => findGuidelines(words.slice(0, 1_000)).map(({ id }) => id) },
    }),
    { title: "One guideline", description: "Its text, by id.", mimeType },
    (uri, { id }) => textOf(uri, guidelines.get(idOf(id)), "guideline_get"),
  );
}

function idOf(value: string | string[] | undefined): string {
  const raw = Array.isArray(value) ? value[0] : value;
  return percentDecoded(raw ?? "");
}

function textOf(
  uri: URL,
  record: { title: string; content: string } | undefined,
  tool: string,
): ReadResourceResult {
  if (record === undefined) throw new ResourceNotFoundError(uri.href, `There is no ${uri.href}.`);
  const { content, content_cut } = cutText(record.content, maxAnswerLength);
  const text = `# ${record.title}\n\n${content}${cutMark(content_cut, tool)}`;
  return { contents: [{ uri: uri.href, mimeType: "text/markdown", text }] };
}
