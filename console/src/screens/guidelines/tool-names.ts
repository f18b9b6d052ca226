import type { ExplainTool } from "../../../../src/client/index.ts";

/** The names that people give tools and sources, by wire value. */
const toolNames: Readonly<Record<string, string>> = {
  fw_a: "Kiro",
  fw_b: "Cursor",
  fw_c: "Claude Code",
  codex: "Codex",
  copilot: "GitHub Copilot",
  gemini: "Gemini CLI",
  windsurf: "Windsurf",
  cline: "Cline",
  zed: "Zed",
  steering: "Kiro steering",
  agents: "AGENTS.md",
  "agents-nearest": "AGENTS.md, the closest",
  "agents-all": "AGENTS.md, all",
  sample: "Sample",
};

/** The format whose files a tool has of its own; the others it only reads, too. */
export function formatOf(tool: ExplainTool): string {
  if (tool === "fw_a") return "steering";
  return tool === "codex" || tool.startsWith("agents") ? "agents" : tool;
}

export const nameOf = (id: string): string => toolNames[id] ?? id;
