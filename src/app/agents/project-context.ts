import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ProjectContext } from "../../agents/project-context.ts";
import type { AnyTool, ToolDefinition } from "../../agents/tool.ts";
import type { ReadTool } from "../../mcp/tool.ts";
import { guidelinesForTool } from "../../mcp/tools/guidelines-for.ts";
import { specImpactTool } from "../../mcp/tools/spec-impact.ts";
import { specSearchTool } from "../../mcp/tools/spec-search.ts";
import type { Project } from "../../project/project.ts";

/** Files that every agent of a project is told; nested ones come with the files they are about. */
const instructionFiles = ["AGENTS.md", "CLAUDE.md"];

/** What of one file is told at most, in characters: the cap that Codex has for AGENTS.md. */
const maxInstructionChars = 32_768;

/** Introduces a project to its agents: instructions, the guidelines of a file, tools to ask with. */
export function createProjectContext(project: Project): ProjectContext {
  return {
    instructions: () => readInstructions(project.root),
    guidelinesFor: (path) =>
      project.guidelines
        .explain(path)
        .applied.filter(({ reason, guideline }) => isShown(reason) && !isInstruction(guideline.source_file))
        .map(({ guideline }) => guideline),
    tools: [
      toAgentTool(guidelinesForTool(project)),
      toAgentTool(specSearchTool(project.specs)),
      toAgentTool(specImpactTool(project)),
    ],
  };
}

// What a person asks for by name, or a tool picks by description, is not forced on every file.
function isShown(reason: string): boolean {
  return reason !== "manual" && reason !== "auto";
}

// These are in the system prompt already.
function isInstruction(file: string): boolean {
  return instructionFiles.includes(file);
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

/**
 * The instruction files of the root as one text, each once: where CLAUDE.md only imports AGENTS.md or
 * repeats it, nothing is said twice.
 */
async function readInstructions(root: string): Promise<string> {
  const parts: string[] = [];
  for (const file of instructionFiles) {
    const text = (await readFile(join(root, file), "utf8").catch(() => "")).replace(/^\uFEFF/, "").trim();
    if (text === "" || text === "@AGENTS.md" || parts.some((part) => part.includes(text))) continue;
    const cut = text.length > maxInstructionChars ? `${text.slice(0, maxInstructionChars)}\n[cut]` : text;
    parts.push(`<instructions source="${file}">\n${cut}\n</instructions>`);
  }
  return parts.join("\n\n");
}
