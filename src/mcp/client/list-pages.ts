import type { Client, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { limits } from "./limits.ts";
import { isPlainObject } from "./normalize-schema.ts";
import type { Listing } from "./read-catalogue.ts";
import { ServerFailure } from "./server-failure.ts";

/** A schema of answers that kit reads itself: the SDK's would refuse all of one for a part that is wrong. */
export const anything: StandardSchemaV1<unknown, unknown> = {
  "~standard": { version: 1, vendor: "kit", validate: (value) => ({ value }) },
};

/** Reads all pages of a server's tools, as far as one may go. */
export async function listPages(client: Client, timeoutMs: number): Promise<Listing> {
  const tools: unknown[] = [];
  const cursors = new Set<string>();
  let chars = 0;
  let cursor: string | undefined;
  for (let page = 0; page < limits.pages; page += 1) {
    const params = cursor === undefined ? {} : { params: { cursor } };
    const answer = await client.request({ method: "tools/list", ...params }, anything, {
      timeout: timeoutMs,
    });
    if (!isPlainObject(answer) || !Array.isArray(answer.tools)) {
      throw new ServerFailure("Its list of tools is none.", { outcome: "refused" });
    }
    for (const tool of answer.tools) {
      if (tools.length >= limits.listedTools || chars > limits.listedChars) return { tools, isCut: true };
      chars += lengthOf(tool);
      tools.push(tool);
    }
    const next: unknown = answer.nextCursor;
    // Without the second condition a server could hand out the same page for ever.
    if (typeof next !== "string" || cursors.has(next)) return { tools, isCut: false };
    cursors.add(next);
    cursor = next;
  }
  return { tools, isCut: true };
}

function lengthOf(tool: unknown): number {
  try {
    return JSON.stringify(tool).length;
  } catch {
    // Nested so deeply that there is no stack for it: it counts as much as it can be at most.
    return limits.messageBytes;
  }
}
