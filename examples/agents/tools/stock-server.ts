/** An MCP server over stdin and stdout, as another team might offer one. */
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const shelf = new Map([["Momo", 3]]);

serveStdio(() => {
  const server = new McpServer({ name: "stock", version: "1.0.0" });
  server.registerTool(
    "in_stock",
    {
      description: "Tells how many copies of a book there are.",
      inputSchema: z.object({ title: z.string() }),
      annotations: { readOnlyHint: true },
    },
    ({ title }) => ({ content: [{ type: "text", text: `${shelf.get(title) ?? 0} copies of ${title}` }] }),
  );
  server.registerTool(
    "empty_shelf",
    { description: "Removes all copies.", inputSchema: z.object({}) },
    () => {
      shelf.clear();
      return { content: [{ type: "text", text: "The shelf is empty." }] };
    },
  );
  return server;
});
