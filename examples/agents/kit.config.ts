import { defineConfig } from "kit";

export default defineConfig({
  agent: { max_turns: 20 },
  mcp: {
    // The example's own server, started as a process: agents see its tools as mcp__stock__<tool>.
    servers: { stock: { command: process.execPath, args: ["tools/stock-server.ts"], allow: ["in_stock"] } },
  },
});
