import { stdin } from "node:process";
import { type Command, defineCommand } from "../command.ts";

export const lsp: Command = defineCommand({
  options: {},
  examples: [
    "kit lsp",
    `vim.lsp.start({ name = "kit", cmd = { "npx", "--no", "kit", "lsp" },`,
    "    root_dir = vim.fn.getcwd() })",
  ],
  details:
    "Speaks the Language Server Protocol on stdin and stdout, for an editor to start. While you type, it shows the problems of specs and guidelines, and their fixes. Hover shows which rules apply to a file (on its first line), and the tests of a criterion with their last results. Works on the folders that the editor has open; code of a folder runs once you trust it ('kit trust'). Ends when stdin ends.",
  run: async (_input, context) => {
    if (stdin.isTTY)
      context.output.note(
        "kit lsp speaks JSON-RPC on stdin and stdout; an editor starts it. Ctrl-C ends it.",
      );
    const { serveLsp } = await import("../lsp/serve-lsp.ts");
    return await serveLsp(context);
  },
});
