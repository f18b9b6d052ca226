import type { McpSource, ToolTarget } from "../../protocol/enums.ts";

/** The parts of a server in which a tool can replace variables. */
export type ServerField = "command" | "args" | "env" | "cwd" | "url" | "headers";

/** Where a tool keeps the MCP servers of a project, and how it writes them. */
export interface ServerSettings {
  readonly label: string;
  readonly path: string;
  /** The key of the servers in the file. */
  readonly key: string;
  /** The parts in which it replaces variables of the environment. */
  readonly fills: readonly ServerField[];
  /** The text before the name in a variable: `env:` in `${env:NAME}`. */
  readonly prefix: string;
  /** The keys of a server that kit reads and writes, in order. */
  readonly keys: readonly string[];
}

interface ToolSettings extends ServerSettings {
  /** The folder of the project's skills. */
  readonly skills: string;
  /** Folders of other tools whose skills it reads, too. */
  readonly readsSkills: readonly string[];
}

const plainKeys = ["type", "command", "args", "env", "url", "headers"] as const;
const everywhere = ["command", "args", "env", "url", "headers"] as const;

/** The tools that skills and servers are written for. Tools that read the folders of others come after those. */
export const toolSettings: Readonly<Record<ToolTarget, ToolSettings>> = {
  fw_c: {
    label: "Claude Code",
    skills: ".claude/skills",
    readsSkills: [],
    ...{ path: ".mcp.json", key: "mcpServers", fills: everywhere, prefix: "", keys: plainKeys },
  },
  steering: {
    label: "Kiro",
    skills: ".kiro/skills",
    readsSkills: [],
    ...{ path: ".kiro/settings/mcp.json", key: "mcpServers", fills: ["env", "headers"], prefix: "" },
    keys: plainKeys,
  },
  codex: {
    label: "Codex",
    skills: ".agents/skills",
    readsSkills: [],
    ...{ path: ".codex/config.toml", key: "mcp_servers", fills: ["env", "headers"], prefix: "" },
    keys: [
      ...["command", "args", "env", "env_vars", "url", "bearer_token_env_var"],
      ...["http_headers", "env_http_headers"],
    ],
  },
  junie: {
    label: "Junie",
    skills: ".junie/skills",
    readsSkills: [],
    // Its documentation names no variables.
    ...{ path: ".junie/mcp/mcp.json", key: "mcpServers", fills: [], prefix: "", keys: plainKeys },
  },
  fw_b: {
    label: "Cursor",
    skills: ".cursor/skills",
    readsSkills: [".agents/skills", ".claude/skills"],
    ...{ path: ".cursor/mcp.json", key: "mcpServers", fills: everywhere, prefix: "env:", keys: plainKeys },
  },
  copilot: {
    label: "GitHub Copilot",
    skills: ".github/skills",
    readsSkills: [".agents/skills", ".claude/skills"],
    ...{ path: ".vscode/mcp.json", key: "servers", fills: [...everywhere, "cwd"], prefix: "env:" },
    keys: [...plainKeys, "cwd"],
  },
};

/** The settings that servers can be read from. */
export function serverSettingsOf(source: McpSource): ServerSettings {
  return source === "kit" ? kitSettings : toolSettings[source];
}

const kitSettings: ServerSettings = {
  ...{ label: "kit", path: "kit's configuration", key: "mcp.servers", fills: ["env", "headers"], prefix: "" },
  keys: [...plainKeys, "cwd"],
};
