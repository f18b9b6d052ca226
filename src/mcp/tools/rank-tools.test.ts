import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { limits } from "../limits.ts";
import { rankTools } from "./find-and-call-tools.ts";
import type { ListedTool } from "./listed-tool.ts";
import { readCatalogue } from "./read-catalogue.ts";

function toolsOf(server: string, described: Readonly<Record<string, string>>): readonly ListedTool[] {
  const tools = Object.entries(described).map(([name, description]) => ({
    name,
    description,
    inputSchema: { type: "object", properties: { [`${name}_id`]: { type: "string" } } },
  }));
  return readCatalogue({ tools, isCut: false }, { server, secrets: [], maxTools: limits.tools }).tools;
}

const tools = [
  ...toolsOf("github", {
    create_issue: "Opens a new issue in a repository.",
    listIssues: "Lists the issues of a repository.",
    merge_pull_request: "Merges a pull request in a repository.",
    get_file: "Reads a file of a repository.",
  }),
  ...toolsOf("linear", { create_ticket: "Makes a ticket, called issue elsewhere." }),
];
const namesFor = (query: string): readonly string[] => rankTools(tools, query).map((tool) => tool.fullName);

test("words of the name count more than those of the description, and rare words more than common ones", () => {
  expect(namesFor("create issue")[0]).toBe("mcp__github__create_issue");
  expect(namesFor("merge repository")[0]).toBe("mcp__github__merge_pull_request");
  expect(namesFor("linear create")[0]).toBe("mcp__linear__create_ticket");
});

test("a search finds names in camel case, prefixes of words and plurals", () => {
  expect(namesFor("list issues")[0]).toBe("mcp__github__listIssues");
  expect(namesFor("repo")).toHaveLength(4);
  expect(namesFor("tickets")).toEqual(["mcp__linear__create_ticket"]);
});

test("a tool's name finds the tool, and a word that no tool contains finds nothing", () => {
  expect(namesFor("mcp__github__get_file")[0]).toBe("mcp__github__get_file");
  expect(namesFor("weather")).toEqual([]);
  expect(namesFor("…")).toEqual([]);
});

test("a repeated search of two thousand tools with long descriptions is fast", () => {
  const many = toolsOf(
    "s",
    Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [`tool_${n}`, `Word${n} `.repeat(50)])),
  );
  rankTools(many, "warm up");
  const started = processorMs();
  expect(rankTools(many, "word1999")[0]?.name).toBe("tool_1999");
  expect(processorMs() - started).toBeLessThan(300);
});
