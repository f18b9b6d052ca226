import type { AnyTool, ToolDefinition, ToolOutput } from "../../agents/define/tool.ts";
import { maskSecrets } from "../../agents/secrets.ts";
import { suggest } from "../../base/error-text.ts";
import { isRecord } from "../../base/record.ts";
import type { McpOrigin } from "../../protocol/event.ts";
import { times } from "../limits.ts";
import type { ServerLink } from "../servers/server-link.ts";
import type { ListedTool } from "./listed-tool.ts";
import { leftOutText } from "./missing-tool-text.ts";
import { rankTools } from "./rank-tools.ts";
import { issuesOf, originOf, runServerTool, timeoutOf, type ValidateJson } from "./server-tool.ts";

export interface FindAndCallOptions {
  readonly links: readonly ServerLink[];
  readonly searchLimit: number;
  readonly validateJson: ValidateJson;
}

/** An answer of `mcp_search` is not longer, so that a tool's schema is given whole or not at all. */
const maxAnswerChars = 40_000;

interface Offer {
  readonly link: ServerLink;
  readonly tool: ListedTool;
}

/** `mcp_search` and `mcp_execute`: two tools in place of however many the servers have. */
export function createFindAndCallTools(options: FindAndCallOptions): readonly AnyTool[] {
  return [createSearchTool(options), createExecuteTool(options)];
}

function createSearchTool({ links, searchLimit }: FindAndCallOptions): AnyTool {
  const servers = links.map((link) => link.name);
  const definition: ToolDefinition<{ readonly query: string; readonly server?: string }> = {
    name: "mcp_search",
    description: `Finds tools of the connected MCP servers (${servers.join(", ")}) by words of their names and descriptions, and gives at most ${searchLimit} with their input schemas. Call one of them with mcp_execute.`,
    input: {
      type: "object",
      properties: {
        query: { type: "string", minLength: 1, description: "Words, such as: create issue." },
        server: { type: "string", enum: servers, description: "Only tools of this server." },
      },
      required: ["query"],
      additionalProperties: false,
    },
    idempotent: true,
    async execute({ query, server }, { signal }) {
      const asked = links.filter((link) => server === undefined || link.name === server);
      const offers = await offersOf(asked, signal);
      const ranked = rankTools(
        offers.map(({ tool }) => tool),
        query,
      );
      return describeFound(ranked, { asked, offers, searchLimit });
    },
  };
  return definition;
}

function createExecuteTool({ links, validateJson }: FindAndCallOptions): AnyTool {
  const definition: ToolDefinition<{ readonly tool: string; readonly arguments?: unknown }> = {
    name: "mcp_execute",
    description:
      "Calls a tool of an MCP server that mcp_search has found, with arguments that fit its input schema.",
    input: {
      type: "object",
      properties: {
        tool: { type: "string", description: "The tool's whole name, such as mcp__github__create_issue." },
        arguments: { type: "object", description: "The arguments of that tool." },
      },
      required: ["tool"],
      additionalProperties: false,
    },
    timeoutMs: times.patience + Math.max(...links.map(timeoutOf)),
    standsFor: ({ tool }) => tool,
    servedBy: (args) => knownOrigin(links, isRecord(args) ? args.tool : undefined),
    async execute({ tool: name, arguments: args = {} }, context) {
      // The server's name is in the tool's: the others need not be asked.
      const owner = links.filter((link) => name.startsWith(`mcp__${link.name}__`));
      const offers = await offersOf(owner.length === 0 ? links : owner, context.signal);
      const found = offers.find(({ tool }) => tool.fullName === name);
      if (found === undefined) return missingTool(name, offers, owner);
      const issues = await issuesOf(found.tool, args, validateJson);
      if (issues.length > 0 || !isRecord(args)) return wrongArguments(found.tool, issues);
      return runServerTool(found.link, { tool: found.tool, args }, context);
    },
  };
  return definition;
}

/** The origin of a tool, if it is known without asking its server. */
function knownOrigin(links: readonly ServerLink[], fullName: unknown): McpOrigin | undefined {
  for (const link of links) {
    const tool = link.known()?.tools.find((each) => each.fullName === fullName);
    if (tool !== undefined) return originOf(link, tool);
  }
  return undefined;
}

async function offersOf(links: readonly ServerLink[], signal: AbortSignal): Promise<readonly Offer[]> {
  const lists = await Promise.all(
    links.map(async (link) => {
      const catalogue = await link.catalogue(signal);
      return (catalogue?.tools ?? []).map((tool) => ({ link, tool }));
    }),
  );
  return lists.flat();
}

function describeFound(
  ranked: readonly ListedTool[],
  found: {
    readonly asked: readonly ServerLink[];
    readonly offers: readonly Offer[];
    readonly searchLimit: number;
  },
): string {
  const sections: string[] = [];
  let chars = 0;
  for (const tool of ranked.slice(0, found.searchLimit)) {
    const section = `${tool.fullName}\n${tool.description}\nInput schema: ${JSON.stringify(tool.schema.bounded)}`;
    chars += section.length;
    if (sections.length > 0 && chars > maxAnswerChars) break;
    sections.push(section);
  }
  const total = found.offers.length;
  const heading =
    ranked.length === 0
      ? `None of the ${total} tools has one of these words.`
      : `${sections.length} of ${ranked.length} tools found${sections.length < ranked.length ? "; more words find fewer" : ""}.`;
  const missing = missingOf(found.asked);
  return [heading, ...missing, ...sections].join("\n\n");
}

/** Lines for the model about servers that cannot be used, or not with all of their tools. */
function missingOf(links: readonly ServerLink[]): readonly string[] {
  return links.flatMap((link) => {
    const failure = link.failure();
    const leftOut = link.known()?.leftOut.size ?? 0;
    if (failure === undefined && leftOut > 0)
      return [`The MCP server "${link.name}" offers more tools than kit takes: ${leftOut} are left out.`];
    if (failure === undefined) return [];
    return [
      `The MCP server "${link.name}" is not available. ${maskSecrets(failure.message, link.settings.secrets)}`,
    ];
  });
}

function missingTool(toolName: string, offers: readonly Offer[], owner: readonly ServerLink[]): ToolOutput {
  const isDown = owner.filter((link) => link.failure() !== undefined);
  const content = leftOutText(toolName, owner) ?? missingOf(isDown).join(" ");
  if (content !== "") return { content, isError: true };
  const near = suggest(
    toolName,
    offers.map(({ tool }) => tool.fullName),
  );
  const hint = near === undefined ? "Find tools with mcp_search." : `Did you mean ${near}?`;
  return { content: `There is no tool named "${toolName}" now. ${hint}`, isError: true };
}

function wrongArguments(tool: ListedTool, issues: readonly string[]): ToolOutput {
  const schema = JSON.stringify(tool.schema.bounded);
  return {
    content: `The arguments are not what ${tool.fullName} takes: ${issues.join("; ")}. Its input schema: ${schema}`,
    isError: true,
  };
}
