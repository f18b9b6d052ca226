import { KitError } from "../../base/kit-error.ts";
import { type Command, defineCommand, flag, option } from "../command.ts";
import { usageError } from "../report-error.ts";
import { openTerminalApp } from "../run/open-terminal-app.ts";
import { parsePayload } from "../run/parse-payload.ts";
import { createEventPrinter } from "../run/print-events.ts";
import { promptAgent } from "../run/prompt-agent.ts";
import { startWorkflow } from "../run/start-workflow.ts";
import { withProject } from "../with-project.ts";

const text = (value: string): string => value;

export const run: Command = defineCommand({
  arguments: [
    { usage: "[workflow]", description: "A workflow of the project, such as src/workflows/<name>.ts" },
  ],
  options: {
    prompt: option("-p, --prompt <text>", "Prompt an agent instead of running a workflow", text),
    payload: option("--payload <json>", "A JSON object for the workflow or the agent", parsePayload),
    agent: option(
      "-a, --agent <name>",
      "The agent to prompt; default: one with the project's tools only",
      text,
    ),
    id: option("--id <id>", "The agent's instance; default: default", text),
    session: option("-s, --session <name>", "The session to continue; default: default", text),
    model: option("-m, --model <name>", "provider/model, such as anthropic/claude-sonnet-4-6", text),
    role: option("--role <name>", "A role of the project, from .agents/roles", text),
    stream: flag("--stream", "Print events as they happen; with --json, one per line"),
    allowWrite: flag("--allow-write", "Let the agent change files of this project"),
    allowShell: flag("--allow-shell", "Let the agent run commands in this project"),
  },
  examples: [
    'kit run --prompt "Which rules apply to src/auth.ts and what would a change there affect?"',
    'kit run --prompt "Fix the failing test" --allow-write --allow-shell --stream',
    'kit run summarize --payload \'{"text": "…"}\'',
  ],
  details:
    "Works in the project itself. Without a provider's key the built-in model offline/guide answers: it looks things up and quotes them. Sessions are kept in .kit/sessions.db.",
  run: ({ args: [workflow], options }, context) => {
    if ((workflow === undefined) === (options.prompt === undefined)) {
      throw usageError("Give a workflow or --prompt, one of the two.", "kit run --help shows both.");
    }
    return withProject(context, async ({ project, loaded }) => {
      const app = await openTerminalApp({ project, loaded, options });
      const printer = createEventPrinter(context, options.stream === true);
      const stop = app.observe(printer.onEvent);
      try {
        for (const problem of app.problems()) context.output.note(printer.problem(problem));
        return workflow === undefined
          ? await promptAgent({ app, context, options, printer })
          : await startWorkflow({ app, context, name: workflow, payload: options.payload ?? {}, printer });
      } catch (error) {
        printer.end();
        if (context.signal.aborted)
          throw new KitError({ code: "aborted", message: "Stopped; the session keeps what was done." });
        throw error;
      } finally {
        stop();
        await app.close();
      }
    });
  },
});
