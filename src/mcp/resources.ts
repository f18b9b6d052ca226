import { type McpServer, type ReadResourceResult, ResourceTemplate } from "@modelcontextprotocol/server";
import { KitError } from "../base/kit-error.ts";
import type { Project } from "../project/project.ts";
import { cutText, maxAnswerLength } from "./bounds.ts";
import { cutMark } from "./text.ts";

/**
 * Adds `kit://specs/{id}` and `kit://guidelines/{id}`, for clients that let a person attach a resource
 * to a prompt. There may be a hundred thousand of them, so they are not listed: search finds ids.
 */
export function addResources(server: McpServer, { specs, guidelines }: Project): void {
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
  try {
    return decodeURIComponent(raw ?? "");
  } catch {
    return raw ?? "";
  }
}

function textOf(
  uri: URL,
  record: { title: string; content: string } | undefined,
  tool: string,
): ReadResourceResult {
  if (record === undefined) throw new KitError({ code: "not_found", message: `There is no ${uri.href}.` });
  const { content, content_cut } = cutText(record.content, maxAnswerLength);
  const text = `# ${record.title}\n\n${content}${cutMark(content_cut, tool)}`;
  return { contents: [{ uri: uri.href, mimeType: "text/markdown", text }] };
}
