import { type Command, defineCommand } from "../command.ts";
import { serve, serveOptions } from "../serve.ts";

export const start: Command = defineCommand({
  drains: true,
  options: serveOptions,
  examples: [
    "kit start",
    "kit start --cwd examples/shop --port 3000",
    "KIT_API_KEYS=secret kit start --host 0.0.0.0",
  ],
  details:
    "Follows changes of the files. KIT_API_KEYS asks every request for a key: Authorization: Bearer <key>. Ctrl-C and SIGTERM let replies under way finish.",
  run: ({ options }, context) => {
    const { output } = context;
    return serve(options, context, {
      dev: false,
      onError: (text) => output.note(`${output.noteStyle("red", "error:")} ${text}`),
    });
  },
});
