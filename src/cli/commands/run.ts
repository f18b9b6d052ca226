import { maskError } from "../../agents/secrets.ts";
import type { LoadedConfig } from "../../app/config/load-config.ts";
import type { App } from "../../app/service/app.ts";
import { KitError } from "../../base/kit-error.ts";
import { backendNames } from "../../protocol/enums.ts";
import { agentName, parseBackend, parsePayload, wholeNumber } from "../choices.ts";
import {
  type Command,
  type CommandContext,
  type CommandOption,
  defineCommand,
  flag,
  listOption,
  option,
} from "../command.ts";
import { createEventPrinter, printFailure } from "../print/print-events.ts";
import { usageError } from "../report-error.ts";
import { promptAgent } from "../run/prompt-agent.ts";
import { checkSpecOptions, parseDollars } from "../run/spec-options.ts";
import { openTerminalService } from "../run/terminal-service.ts";
import { withProject } from "../with-project.ts";

const text = (value: string): string => value;

/** Each value is one entry: a command may contain commas. */
const allowedLines: CommandOption<readonly string[]> = {
  flags: "--allow-command <line>",
  description: 'Let the agent run this command ("npm test", "git commit") and no other; may be given again',
  parse: (line) => [line],
  repeats: true,
};

/** Each value is one name: a name may contain commas. */
const paths: CommandOption<readonly string[]> = {
  flags: "--file <path>",
  description: "A PDF, image, recording or text that the model gets with the prompt; may be repeated",
  parse: (path) => [path],
  repeats: true,
};

/** Each value is one name: the path of a file may contain commas. */
const omittedRules: CommandOption<readonly string[]> = {
  flags: "--omit-rule <rule>",
  description:
    "A rule that the new conversation is not shown: AGENTS.md, or a section such as AGENTS.md#money; may be repeated",
  parse: (rule) => [rule],
  repeats: true,
};

/** The agent settings of a prompt or a skill. */
const ofAgents = ["agent", "id", "session", "continue", "role", "file", "omitRule"] as const;

export const run: Command = defineCommand({
  arguments: [
    {
      usage: "[workflow]",
      description: "A workflow of the project: the name of src/workflows/<name>.ts",
      completes: "workflow",
    },
  ],
  options: {
    prompt: option("-p, --prompt <text>", "Prompt an agent; - reads the prompt from stdin", text),
    skill: option("--skill <name>", "Run a skill of the project; --payload gives its arguments", text),
    payload: option(
      "--payload <json>",
      "A JSON object for the workflow, the skill or the agent",
      parsePayload,
    ),
    agent: option(
      "-a, --agent <name>",
      "The agent to prompt; default: one with the project's tools only",
      agentName,
    ),
    id: option("--id <id>", "The agent's instance; default: default", text),
    session: option(
      "-s, --session <name>",
      "The conversation to continue or begin; default: a new one",
      text,
    ),
    continue: flag("-c, --continue", "Continue the conversation that was used last"),
    model: listOption(
      "-m, --model <name>",
      "provider/model, such as anthropic/claude-sonnet-4-6; repeat it, or separate by commas, for fallbacks",
      text,
    ),
    backend: option(
      "--backend <name>",
      `The backend that drives the agent: ${backendNames.join(", ")}`,
      parseBackend,
    ),
    file: paths,
    omitRule: omittedRules,
    role: option("--role <name>", "A role of the project, from .agents/roles", text),
    spec: option("--spec <feature>", "Work through the open tasks of a spec, such as checkout", text),
    task: listOption("--task <numbers>", "With --spec: only these tasks, such as 3 or 1.2", text),
    attempts: option("--attempts <number>", "With --spec: attempts per task; default 3", wholeNumber(1, 20)),
    parallel: option(
      "--parallel <number>",
      "With --spec: how many tasks that it marks as parallel are done at once; default 1",
      wholeNumber(1, 8),
    ),
    maxCost: option(
      "--max-cost <dollars>",
      "With --spec: the most that all its model calls may cost",
      parseDollars,
    ),
    testsBy: option("--tests-by <agent>", "With --spec: another agent writes the tests first", agentName),
    dryRun: flag("--dry-run", "With --spec: print the tasks, and run nothing"),
    stream: flag("--stream", "Show the work as it happens; with --json, an event per line"),
    allowWrite: flag("--allow-write", "Let the agent change files of this project"),
    allowShell: flag("--allow-shell", "Let the agent run commands in this project"),
    allowCommand: allowedLines,
  },
  examples: [
    'kit run --prompt "Which rules apply to src/auth.ts?"',
    'kit run --prompt "Fix the failing test" --allow-write --allow-shell --stream',
    'kit run --continue --prompt "And which tests cover it?"',
    "git diff | kit run --prompt - --agent reviewer",
    'kit run --prompt "What does the invoice say?" --file invoice.pdf',
    'kit run summarize --payload \'{"text": "…"}\'',
    "kit run --spec checkout --task 3 --agent coder",
  ],
  details:
    "Works in the project itself. Without a provider's key the built-in model offline/guide answers: it looks things up and quotes them. Conversations are kept in .kit/sessions.db; --continue continues the last one, --session the one with that name. A workflow runs in this process and ends with it; 'kit invoke' runs it on a server, where it survives restarts. --spec does each open task in a work tree of its own: the agent works, kit judges as 'kit specs verify' does, a refusal is its next prompt, and a closed task is committed to the branch kit/<feature> with its tick. It goes on after a crash with the same command. Exit 0: all closed; 1: some not; 3: a person has to decide.",
  run: ({ args: [workflow], options }, context) => {
    const inputs = [workflow, options.prompt, options.skill, options.spec].filter(
      (each) => each !== undefined,
    );
    if (inputs.length !== 1) {
      throw usageError(
        "Give exactly one of: a workflow, --prompt, --skill, --spec.",
        "'kit run --help' shows each.",
      );
    }
    checkSpecOptions(options);
    const astray = ofAgents.find((name) => options[name] !== undefined);
    if (workflow !== undefined && astray !== undefined)
      throw usageError(
        `--${astray} works with --prompt or --skill only: a workflow decides in its code which agents it prompts, and how.`,
        "Pass input to the workflow with --payload.",
      );
    if (options.model?.length === 0)
      throw usageError("--model names no model.", "Give one, such as offline/guide.");
    if (options.continue === true && options.session !== undefined) {
      throw usageError("Give --continue or --session, not both.", "--session NAME continues that one.");
    }
    return withProject(
      context,
      async ({ project, loaded }) => {
        if (options.spec !== undefined)
          return await (await import("../run/run-spec.ts")).runSpec({
            project,
            loaded,
            context,
            options,
            feature: options.spec,
          });
        const answers = workflow === undefined || context.output.isTerminal;
        const printer = createEventPrinter(context, { stream: options.stream === true, answers });
        using folder =
          workflow === undefined
            ? undefined
            : (await import("../run/terminal-approvals.ts")).openTerminalFolder(context.root);
        const engine = folder?.path ?? "memory";
        const service = await openTerminalService({ project, loaded, engine, options, context });
        const { app } = service;
        try {
          for (const problem of app.problems()) printer.problem(problem);
          await warnOfMissingIsolation(loaded, context);
          return workflow === undefined
            ? await promptAgent({ app, context, options, printer })
            : await (await import("../run/start-workflow.ts")).startWorkflow({
                service,
                context,
                name: workflow,
                options,
                printer,
              });
        } catch (error) {
          printer.end();
          context.output.progress("");
          if (context.signal.aborted) {
            context.output.note(
              workflow === undefined
                ? "Stopped. The session keeps what was done so far."
                : `Stopped, and the run with it. On a server it would continue: 'kit invoke ${workflow}'.`,
            );
            throw context.signal.reason;
          }
          const exitCode = printFailure(maskError(error, app.mask), context, options.stream === true);
          return isUnknownName(error, app, { workflow, agent: options.agent }) ? 2 : exitCode;
        } finally {
          await app.close();
        }
      },
      { runsCode: true, sendsKeys: true, dotEnv: true },
    );
  },
});

/** Whether the line names a workflow or an agent for which there is no file, which is wrong usage. */
function isUnknownName(
  error: unknown,
  app: App,
  { workflow, agent }: { readonly workflow: string | undefined; readonly agent: string | undefined },
): boolean {
  if (!(error instanceof KitError)) return false;
  const isMissing = (kind: "agent" | "workflow", name: string | undefined): boolean =>
    error.code === `${kind}_not_found` &&
    ![
      ...(kind === "agent" ? app.agents() : app.workflows()),
      ...app.problems().flatMap(({ source }) => (source?.kind === kind ? source : [])),
    ].some((source) => source.name === name);
  return (
    (workflow !== undefined && isMissing("workflow", workflow)) ||
    (agent !== undefined && isMissing("agent", agent))
  );
}

/** Warns on stderr that commands run without isolation, on a system for which kit has none. */
async function warnOfMissingIsolation(
  { config }: LoadedConfig,
  { output, json, platform }: CommandContext,
): Promise<void> {
  // On these systems finding out needs a process, and the sandbox does it before the first command.
  if (json || platform === "linux" || platform === "darwin") return;
  const { sandbox = "local" } = config.agent ?? {};
  const name = typeof sandbox === "string" ? sandbox : sandbox.name;
  if (name !== "local" && name !== "virtual") return;
  const { findWallOf } = await import("../../sandboxes/host/wall/find-wall.ts");
  const wall = await findWallOf(platform);
  if (wall.wall !== "none") return;
  const refusal =
    config.sandbox?.isolation === "required" ? " sandbox.isolation is required, so no command runs." : "";
  const text = `Commands run without isolation: ${wall.reason}${refusal} ${wall.hint}`;
  output.note(output.noteStyle("dim", text));
}
