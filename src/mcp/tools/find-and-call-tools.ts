import type { AnyTool, ToolDefinition, ToolOutput, ValidateJson } from "../../agents/define/tool.ts";
import { maskSecrets } from "../../agents/secrets.ts";
import { suggest } from "../../base/error-text.ts";
import { isRecord } from "../../base/record.ts";
import type { McpOrigin } from "../../protocol/event.ts";
import { times } from "../limits.ts";
import type { ServerLink } from "../servers/server-link.ts";
import type { ListedTool } from "./listed-tool.ts";
import { leftOutText } from "./missing-tool-text.ts";
import { originOf, runServerTool, timeoutOf, withoutNulls } from "./server-tool.ts";

export interface FindAndCallOptions {
  readonly links: readonly ServerLink[];
  readonly searchLimit: number;
  readonly validateJson: ValidateJson;
}

/** The limit of an answer of `mcp_search`; a tool whose schema does not fit is not listed. */
const maxAnswerChars = 40_000;

interface Offer {
  readonly link: ServerLink;
  readonly tool: ListedTool;
}

/** Creates `mcp_search` and `mcp_execute`, two tools that replace all tools of the servers. */
export function createFindAndCallTools(options: FindAndCallOptions): readonly AnyTool[] {
  return [createSearchTool(options), createExecuteTool(options)];
}

function createSearchTool({ links, searchLimit }: FindAndCallOptions): AnyTool {
  const servers = links.map((link) => link.name);
  const definition: ToolDefinition<{ readonly query: string; readonly server?: string }> = {
    name: "mcp_search",
    description: `Finds tools of the connected MCP servers (${servers.join(", ")}) by words of their names and descriptions, and returns at most ${searchLimit} with their input schemas. Call one of them with mcp_execute.`,
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
      const searched = links.filter((link) => server === undefined || link.name === server);
      const offers = await offersOf(searched, signal);
      const ranked = rankTools(
        offers.map(({ tool }) => tool),
        query,
      );
      return describeFound(ranked, { searched, offers, searchLimit });
    },
  };
  return definition;
}

function createExecuteTool({ links, validateJson }: FindAndCallOptions): AnyTool {
  const definition: ToolDefinition<{ readonly tool: string; readonly arguments?: unknown }> = {
    name: "mcp_execute",
    description:
      "Calls a tool of an MCP server that mcp_search found, with arguments that match its input schema.",
    input: {
      type: "object",
      properties: {
        tool: { type: "string", description: "The tool's full name, such as mcp__github__create_issue." },
        arguments: { type: "object", description: "The arguments of that tool." },
      },
      required: ["tool"],
      additionalProperties: false,
    },
    timeoutMs: times.patience + Math.max(...links.map(timeoutOf)),
    standsFor: ({ tool }) => tool,
    servedBy: (args) => knownOrigin(links, isRecord(args) ? args.tool : undefined),
    async execute({ tool: name, arguments: given = {} }, context) {
      // The tool's name contains the server's name, so other servers need no request.
      const owner = links.filter((link) => name.startsWith(`mcp__${link.name}__`));
      const offers = await offersOf(owner.length === 0 ? links : owner, context.signal);
      const offer = offers.find(({ tool }) => tool.fullName === name);
      if (offer === undefined) return missingTool(name, offers, owner);
      const { args, issues } = await withoutNulls(offer.tool, given, validateJson);
      if (issues.length > 0 || !isRecord(args)) return wrongArguments(offer.tool, issues);
      return runServerTool(offer.link, { tool: offer.tool, args }, context);
    },
  };
  return definition;
}

/** The origin of a tool, if it is known without a request to its server. */
function knownOrigin(links: readonly ServerLink[], fullName: unknown): McpOrigin | undefined {
  for (const link of links) {
    const tool = link.lastCatalogue()?.tools.find((each) => each.fullName === fullName);
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
  search: {
    readonly searched: readonly ServerLink[];
    readonly offers: readonly Offer[];
    readonly searchLimit: number;
  },
): string {
  const sections: string[] = [];
  let chars = 0;
  for (const tool of ranked.slice(0, search.searchLimit)) {
    const section = `${tool.fullName}\n${tool.description}\nInput schema: ${JSON.stringify(tool.schema.bounded)}`;
    chars += section.length;
    if (sections.length > 0 && chars > maxAnswerChars) break;
    sections.push(section);
  }
  const total = search.offers.length;
  const heading =
    ranked.length === 0
      ? `None of the ${total} tools contains one of these words.`
      : `${sections.length} of ${ranked.length} tools found${sections.length < ranked.length ? "; use more words to narrow the search" : ""}.`;
  const missing = missingOf(search.searched);
  return [heading, ...missing, ...sections].join("\n\n");
}

/** Lines for the model about servers that are down or offer too many tools. */
function missingOf(links: readonly ServerLink[]): readonly string[] {
  return links.flatMap((link) => {
    const failure = link.failure();
    const leftOut = link.lastCatalogue()?.leftOut.size ?? 0;
    if (failure === undefined && leftOut > 0)
      return [
        `The MCP server "${link.name}" offers more tools than kit accepts: ${leftOut} are not available.`,
      ];
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

/** The weight of a word by the field that contains it. */
const weights = { name: 4, title: 3, server: 2, description: 1, property: 1 } as const;

/** The words of a tool with their weights. */
type WordWeights = ReadonlyMap<string, number>;

/**
 * Returns the tools that contain at least one of the words, best first. Rare words count more than common ones, words
 * of the name more than words of the description, and a word's prefix counts 60 %.
 */
export function rankTools(tools: readonly ListedTool[], query: string): readonly ListedTool[] {
  const queryWords = [...new Set(wordsOf(query))];
  const indexed = tools.map((tool) => ({ tool, words: wordWeights(tool) }));
  const rarity = new Map(
    queryWords.map((word) => {
      const holders = indexed.filter(({ words }) => weightOf(words, word) > 0).length;
      return [word, Math.log(1 + tools.length / Math.max(1, holders))] as const;
    }),
  );
  const scored = indexed.map(({ tool, words }) => {
    let score = query.includes(tool.fullName) || query.trim() === tool.name ? 1_000 : 0;
    for (const word of queryWords) score += weightOf(words, word) * (rarity.get(word) ?? 0);
    return { tool, score };
  });
  return scored
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .map(({ tool }) => tool);
}

function weightOf(words: WordWeights, queryWord: string): number {
  const exact = words.get(queryWord);
  if (exact !== undefined) return exact;
  if (queryWord.length < 3) return 0;
  let best = 0;
  for (const [word, weight] of words) {
    if (word.startsWith(queryWord) || (word.length > 3 && queryWord.startsWith(word)))
      best = Math.max(best, 0.6 * weight);
  }
  return best;
}

// Split a tool's text into words only once.
const wordCache = new WeakMap<ListedTool, WordWeights>();

function wordWeights(tool: ListedTool): WordWeights {
  let words = wordCache.get(tool);
  if (words === undefined) {
    words = weigh(tool);
    wordCache.set(tool, words);
  }
  return words;
}

function weigh(tool: ListedTool): WordWeights {
  const words = new Map<string, number>();
  const add = (text: string, weight: number): void => {
    for (const word of wordsOf(text)) words.set(word, Math.max(words.get(word) ?? 0, weight));
  };
  const { properties } = tool.schema.bounded;
  add(tool.name, weights.name);
  add(tool.title, weights.title);
  add(tool.server, weights.server);
  add(tool.description, weights.description);
  add(Object.keys(isRecord(properties) ? properties : {}).join(" "), weights.property);
  return words;
}

/** `createIssue_v2` is create, issue and v2. */
function wordsOf(text: string): readonly string[] {
  return (
    text
      .slice(0, 10_000)
      .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
