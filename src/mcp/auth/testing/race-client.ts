import type { ToolDefinition } from "../../../agents/define/tool.ts";
import { createToolContext } from "../../../agents/define/tool-context.ts";
import { createJsonValidator } from "../../../app/runtime/validate-json.ts";
import { createMcpClient } from "../../create-mcp-client.ts";

// One of several processes that share a login: it calls a tool twelve times two at once, and prints how many calls succeeded.
const [url = "", logins = ""] = process.argv.slice(2);
const validateJson = createJsonValidator({ isLenient: true });
const client = createMcpClient({
  config: { servers: { s: { url } } },
  root: process.cwd(),
  env: {},
  logins,
  validateJson,
});
const tools = (await client.tools()) as readonly ToolDefinition[];
const echo = tools.find(({ name }) => name === "mcp__s__echo");
const call = async (): Promise<boolean> => {
  const output = (await echo?.execute({ text: "hi" }, createToolContext({}))) as
    | { readonly isError?: boolean }
    | undefined;
  return output !== undefined && output.isError !== true;
};
let succeeded = 0;
for (let round = 0; round < 12; round += 1) {
  const results = await Promise.all([call(), call()]);
  succeeded += results.filter(Boolean).length;
  await new Promise((done) => setTimeout(done, 500));
}
await client.close();
process.stdout.write(`${succeeded}\n`);
