import { isAbsolute, join, relative, sep } from "node:path";
import type { ProjectContext } from "../../agents/project-context.ts";
import type { AnyTool, ToolDefinition } from "../../agents/tool.ts";
import type { ReadTool } from "../../mcp/tool.ts";
import { guidelinesForTool } from "../../mcp/tools/guidelines-for.ts";
import { specImpactTool } from "../../mcp/tools/spec-impact.ts";
import { specSearchTool } from "../../mcp/tools/spec-search.ts";
import type { Project } from "../../project/project.ts";
import type { AppliedGuideline } from "../../protocol/guideline-query.ts";
import { createInstructionReader } from "./read-instructions.ts";

/** Introduces a project to its agents: instructions, the guidelines of a file, tools to ask with. */
export function createProjectContext(project: Project): ProjectContext {
  return {
    instructions: createInstructionReader(project.root),
    guidelinesFor(path, hostRoot) {
      const place = hostRoot === undefined ? path : placeIn(project.root, join(hostRoot, path));
      if (place === undefined) return [];
      return project.guidelines
        .explain(place)
        .applied.filter(isShown)
        .map(({ guideline }) => guideline);
    },
    tools: [
      toAgentTool(guidelinesForTool(project)),
      toAgentTool(specSearchTool(project.specs)),
      toAgentTool(specImpactTool(project)),
    ],
  };
}

/** The project-relative path of a file; undefined for one that is none of the project's. */
function placeIn(root: string, file: string): string | undefined {
  const path = relative(root, file).split(sep).join("/");
  return path === ".." || path.startsWith("../") || isAbsolute(path) ? undefined : path;
}

// What a person asks for by name, or a tool picks by description, is not forced on every file. Nor are
// kit's samples, which are no rules of the repository.
function isShown({ guideline, reason }: AppliedGuideline): boolean {
  return reason !== "manual" && reason !== "auto" && !guideline.is_sample;
}

/** The same tool that kit offers over MCP, for an agent. */
function toAgentTool<Input, Output extends object>(tool: ReadTool<Input, Output>): AnyTool {
  const definition: ToolDefinition<Input> = {
    name: tool.name,
    description: tool.description,
    input: tool.input as ToolDefinition<Input>["input"],
    idempotent: true,
    execute: async (input, { signal }) => tool.toText(await tool.run(input, signal)),
  };
  return definition;
}
