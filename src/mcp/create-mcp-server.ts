import { McpServer } from "@modelcontextprotocol/server";
import { version } from "../base/version.ts";
import type { Project } from "../project/project.ts";
import { addResources } from "./resources.ts";
import { addTool, type ToolOptions } from "./tool.ts";
import { guidelineConvert } from "./tools/guideline-convert.ts";
import { guidelineGet } from "./tools/guideline-get.ts";
import { guidelinesFor } from "./tools/guidelines-for.ts";
import { guidelinesSearch } from "./tools/guidelines-search.ts";
import { specGet } from "./tools/spec-get.ts";
import { specImpact } from "./tools/spec-impact.ts";
import { specSearch } from "./tools/spec-search.ts";

const instructions =
  "kit knows the specifications and coding guidelines of this repository. Before you write or change a file, ask guidelines_for which rules apply to it. Ask spec_search what a feature must do. Before you finish, ask spec_impact what your change affects and which tests to run. Answers name file and line. An answer that ends in [cut: …] goes on with its cursor.";

/** An MCP server with a project's specs, guidelines and impact as tools that only read. */
export function createMcpServer(project: Project, options: ToolOptions = {}): McpServer {
  const { specs, guidelines } = project;
  const server = new McpServer(
    { name: "kit", title: `kit: ${project.name}`, version },
    { instructions, capabilities: { tools: {}, resources: {} }, maxToolInputElements: 5_000 },
  );
  addTool(server, guidelinesFor(guidelines), options);
  addTool(server, guidelinesSearch(guidelines), options);
  addTool(server, guidelineGet(guidelines), options);
  addTool(server, guidelineConvert(guidelines), options);
  addTool(server, specSearch(specs), options);
  addTool(server, specGet(specs), options);
  addTool(server, specImpact(project), options);
  addResources(server, project);
  return server;
}
