import { McpServer } from "@modelcontextprotocol/server";
import { version } from "../base/version.ts";
import type { Project } from "../project/project.ts";
import { addResources } from "./resources.ts";
import { addTool, type ToolOptions } from "./tool.ts";
import { guidelineConvertTool } from "./tools/guideline-convert.ts";
import { guidelineGetTool } from "./tools/guideline-get.ts";
import { guidelinesForTool } from "./tools/guidelines-for.ts";
import { guidelinesSearchTool } from "./tools/guidelines-search.ts";
import { specCoverageTool } from "./tools/spec-coverage.ts";
import { specGetTool } from "./tools/spec-get.ts";
import { specImpactTool } from "./tools/spec-impact.ts";
import { specSearchTool } from "./tools/spec-search.ts";
import { specStaleTool } from "./tools/spec-stale.ts";

const instructions =
  "kit knows the specifications and coding guidelines of this repository. Before you write or change a file, ask guidelines_for which rules apply to it. Ask spec_search what a feature must do. Before you finish, ask spec_impact what your change affects and which tests to run. Answers name file and line. An answer that ends in [cut: …] goes on with its cursor.";

/** An MCP server with a project's specs, guidelines and impact as tools that only read. */
export function createMcpServer(project: Project, options: ToolOptions = {}): McpServer {
  const { specs, guidelines } = project;
  const server = new McpServer(
    { name: "kit", title: `kit: ${project.name}`, version },
    { instructions, capabilities: { tools: {}, resources: {} }, maxToolInputElements: 5_000 },
  );
  const signed = { ...options, indexing: project.indexing };
  // What applies to a file is whole from the start.
  addTool(server, guidelinesForTool(project), options);
  addTool(server, guidelinesSearchTool(guidelines), signed);
  addTool(server, guidelineGetTool(guidelines), signed);
  addTool(server, guidelineConvertTool(guidelines), signed);
  addTool(server, specSearchTool(specs), signed);
  addTool(server, specGetTool(specs), signed);
  addTool(server, specImpactTool(project), signed);
  addTool(server, specCoverageTool(project), signed);
  addTool(server, specStaleTool(project), signed);
  addResources(server, project);
  return server;
}
