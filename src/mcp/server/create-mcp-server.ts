import {
  McpServer,
  type ReadResourceResult,
  ResourceNotFoundError,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { version } from "../../base/own-package.ts";
import { percentDecoded } from "../../base/percent.ts";
import type { Project } from "../../project/project.ts";
import { cutMark, cutText, maxAnswerLength } from "./bounds.ts";
import { addTool, type ToolOptions } from "./read-tool.ts";
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

const instructions =
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
  const { specs, guidelines } = project;
  const server = new McpServer(
    { name: "kit", title: `kit: ${project.name}`, version },
    {
      instructions: verify === undefined ? instructions : `${instructions} ${verifyInstruction}`,
      capabilities: { tools: {}, resources: {} },
      maxToolInputElements: 5_000,
    },
  );
  const withProgress = { ...options, indexing: project.indexing };
  // This tool waits until the guidelines of the file are indexed, so its answers are always complete.
  addTool(server, guidelinesForTool(project), options);
  addTool(server, guidelinesSearchTool(guidelines), withProgress);
  addTool(server, guidelineGetTool(guidelines), withProgress);
  addTool(server, guidelineConvertTool(guidelines), withProgress);
  addTool(server, specSearchTool(specs), withProgress);
  addTool(server, specGetTool(specs), withProgress);
  addTool(server, specImpactTool(project), withProgress);
  addTool(server, specCoverageTool(project), withProgress);
  addTool(server, specStaleTool(project), withProgress);
  // A verdict waits until the index is current.
  if (verify !== undefined) addTool(server, verifySpecsTool(verify), options);
  addResources(server, project);
  return server;
}

/**
 * Adds `kit://specs/{id}` and `kit://guidelines/{id}`, for clients in which people attach resources to a prompt.
 * They are not listed, because there may be a hundred thousand; the search tools find ids.
 */
function addResources(server: McpServer, { specs, guidelines }: Project): void {
  const mimeType = "text/markdown";
  server.registerResource(
    "spec",
    new ResourceTemplate("kit://specs/{id}", { list: undefined }),
    { title: "One spec block", description: "Its text, by id.", mimeType },
    (uri, { id }) => textOf(uri, specs.get(idOf(id)), "spec_get"),
  );
  server.registerResource(
    "guideline",
    new ResourceTemplate("kit://guidelines/{id}", { list: undefined }),
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
