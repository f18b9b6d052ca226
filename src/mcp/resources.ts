import { type McpServer, type ReadResourceResult, ResourceTemplate } from "@modelcontextprotocol/server";
import { KitError } from "../base/kit-error.ts";
import type { Project } from "../project/project.ts";

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
    (uri, { id }) => textOf(uri, specs.get(idOf(id))),
  );
  server.registerResource(
    "guideline",
    new ResourceTemplate("kit://guidelines/{id}", { list: undefined }),
    { title: "One guideline", description: "Its text, by id.", mimeType },
    (uri, { id }) => textOf(uri, guidelines.get(idOf(id))),
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

function textOf(uri: URL, record: { title: string; content: string } | undefined): ReadResourceResult {
  if (record === undefined) throw new KitError({ code: "not_found", message: `There is no ${uri.href}.` });
  const text = `# ${record.title}\n\n${record.content}`;
  return { contents: [{ uri: uri.href, mimeType: "text/markdown", text }] };
}
