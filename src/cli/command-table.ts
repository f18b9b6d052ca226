import type { AnyEntry } from "./command.ts";
import { specsCommands } from "./specs-commands.ts";

/** First steps as complete command lines, for kit's own help. */
export const firstExamples: readonly string[] = [
  "kit doctor",
  "kit guidelines explain src/app.ts",
  `kit run --prompt "Which rules apply to src/app.ts?"`,
  "kit init my-agents",
];

/** Commands under one heading of kit's help. */
export interface CommandChapter {
  readonly title: string;
  readonly commands: readonly AnyEntry[];
}

/** Every command of kit. The help reads names and summaries only; a command's code is loaded when it is called. */
export const chapters: readonly CommandChapter[] = [
  {
    title: "Read the repository",
    commands: [
      {
        name: "doctor",
        summary: "Check this machine and this project, and suggest what to do",
        load: async () => (await import("./commands/doctor.ts")).doctor,
      },
      {
        name: "specs",
        summary: "Specifications: list, query, validate, impact, coverage, …",
        examples: ["kit specs list", "kit specs impact --since main", "kit specs coverage"],
        commands: specsCommands,
      },
      {
        name: "guidelines",
        summary: "Coding guidelines: list, explain, lint, check, sync, …",
        examples: [
          "kit guidelines explain src/app.ts",
          "kit guidelines lint",
          "kit guidelines sync --from agents --to cursor,claude",
        ],
        commands: [
          {
            name: "list",
            summary: "List guidelines",
            load: async () => (await import("./commands/guidelines.ts")).guidelinesList,
          },
          {
            name: "show",
            summary: "Show one guideline",
            load: async () => (await import("./commands/guidelines.ts")).guidelinesShow,
          },
          {
            name: "explain",
            summary: "Show which guidelines apply to a file, in which order, and why",
            load: async () => (await import("./commands/guidelines.ts")).guidelinesExplain,
          },
          {
            name: "usage",
            summary: "Show how often sessions were shown each rule, and what that cost",
            load: async () => (await import("./commands/guidelines-usage.ts")).guidelinesUsage,
          },
          {
            name: "convert",
            summary: "Convert one guideline to another tool's format",
            load: async () => (await import("./commands/guidelines-convert.ts")).guidelinesConvert,
          },
          {
            name: "export",
            summary: "Print all guidelines as one file of a tool",
            load: async () => (await import("./commands/guidelines-convert.ts")).guidelinesExport,
          },
          {
            name: "lint",
            summary: "Find contradictions, copies that differ, and globs and links that lead nowhere",
            load: async () => (await import("./commands/validate-and-lint.ts")).guidelinesLint,
          },
          {
            name: "check",
            summary: "Run the checks of rules on changed files, and list the rules that nothing checks",
            load: async () => (await import("./commands/guidelines-check.ts")).guidelinesCheck,
          },
          {
            name: "sync",
            summary: "Keep one source of truth and write the other tools' files from it",
            load: async () => (await import("./commands/guidelines-sync.ts")).guidelinesSync,
          },
        ],
      },
      {
        name: "mcp",
        summary: "Serve specs and guidelines to a coding agent, over MCP on stdio",
        load: async () => (await import("./commands/mcp.ts")).mcp,
      },
    ],
  },
  {
    title: "Make a project",
    commands: [
      {
        name: "init",
        summary: "Make a project with an agent, a workflow, a skill and a role",
        load: async () => (await import("./commands/init.ts")).init,
      },
      {
        name: "add",
        summary: "Add a model provider, store or sandbox: packages and configuration",
        load: async () => (await import("./commands/add.ts")).add,
      },
      {
        name: "skill",
        summary: "Skills: new",
        examples: ["kit skill new release-notes"],
        commands: [
          {
            name: "new",
            summary: "Start a skill from a template",
            load: async () => (await import("./commands/skill-new.ts")).skillNew,
          },
        ],
      },
      {
        name: "routes",
        summary: "List the agents, workflows and webhooks that are served",
        load: async () => (await import("./commands/routes.ts")).routes,
      },
      {
        name: "types",
        summary: "Write the types of agents and workflows for kit/client",
        load: async () => (await import("./commands/types.ts")).types,
      },
      {
        name: "trust",
        summary: "Trust the code of this folder, and the addresses of your keys",
        load: async () => (await import("./commands/trust.ts")).trust,
      },
      {
        name: "completion",
        summary: "Complete commands in the shell: bash, zsh or fish",
        load: async () => (await import("./commands/completion.ts")).createCompletion(commandTable),
      },
    ],
  },
  {
    title: "Run it",
    commands: [
      {
        name: "run",
        summary: "Prompt an agent, or run a workflow, in this project",
        load: async () => (await import("./commands/run.ts")).run,
      },
      {
        name: "acp",
        summary: "Serve an agent to an editor such as Zed, over the Agent Client Protocol",
        load: async () => (await import("./commands/acp.ts")).acp,
      },
      {
        name: "lsp",
        summary: "Show problems, rules and tests in an editor, over the Language Server Protocol",
        load: async () => (await import("./commands/lsp.ts")).lsp,
      },
      {
        name: "start",
        summary: "Serve agents, workflows, specs and guidelines over HTTP",
        load: async () => (await import("./commands/start.ts")).start,
      },
      {
        name: "dev",
        summary: "Like start, for development: reload on change, log, explain errors",
        load: async () => (await import("./commands/dev.ts")).dev,
      },
      {
        name: "stop",
        summary: "End the servers that run for this project",
        load: async () => (await import("./commands/stop.ts")).stop,
      },
      {
        name: "invoke",
        summary: "Prompt an agent of a running server, or run a workflow there",
        load: async () => (await import("./commands/invoke.ts")).invoke,
      },
      {
        name: "build",
        summary: "Build the project into a folder that runs alone",
        load: async () => (await import("./commands/build.ts")).build,
      },
      {
        name: "deploy",
        summary: "Build, and deploy with the platform's own tool",
        load: async () => (await import("./commands/deploy.ts")).deploy,
      },
    ],
  },
  {
    title: "Operate it",
    commands: [
      {
        name: "runs",
        summary: "Runs of workflows: list, show, signal, cancel, retry, rerun, check",
        examples: [
          "kit runs list --status waiting",
          `kit runs signal 3HAQ99FR approval --payload '{"approved": true}'`,
        ],
        commands: [
          {
            name: "list",
            summary: "List runs, newest first",
            load: async () => (await import("./commands/runs.ts")).runsList,
          },
          {
            name: "show",
            summary: "Show one run with its payload and result",
            load: async () => (await import("./commands/runs.ts")).runsShow,
          },
          {
            name: "signal",
            summary: "Send a run the signal that it waits for",
            load: async () => (await import("./commands/runs.ts")).runsSignal,
          },
          {
            name: "cancel",
            summary: "Cancel a run",
            load: async () => (await import("./commands/runs.ts")).runsCancel,
          },
          {
            name: "retry",
            summary: "Continue a failed run where it was",
            load: async () => (await import("./commands/runs.ts")).runsRetry,
          },
          {
            name: "rerun",
            summary: "Start a new run with the payload of one that has ended",
            load: async () => (await import("./commands/runs.ts")).runsRerun,
          },
          {
            name: "check",
            summary: "Check which runs in flight new code would break",
            load: async () => (await import("./commands/runs-check.ts")).runsCheck,
          },
        ],
      },
      {
        name: "logs",
        summary: "Show the events of a run of a workflow",
        load: async () => (await import("./commands/logs.ts")).logs,
      },
      {
        name: "dispatches",
        summary: "Inputs dispatched to agents: list, show, retry, cancel",
        examples: [
          "kit dispatches list --status failed",
          "kit dispatches retry dispatch_01M7Y2ZJQD7P1XW6CX5CKK3KT8",
        ],
        commands: [
          {
            name: "list",
            summary: "List dispatches, newest first; failed ones are the dead letters",
            load: async () => (await import("./commands/dispatches.ts")).dispatchesList,
          },
          {
            name: "show",
            summary: "Show one dispatch",
            load: async () => (await import("./commands/dispatches.ts")).dispatchesShow,
          },
          {
            name: "retry",
            summary: "Retry a dead letter",
            load: async () => (await import("./commands/dispatches.ts")).dispatchesRetry,
          },
          {
            name: "cancel",
            summary: "Cancel a queued input, or abort a running one",
            load: async () => (await import("./commands/dispatches.ts")).dispatchesCancel,
          },
        ],
      },
      {
        name: "approvals",
        summary: "Tool calls that wait for a person: list, show, approve, deny, answer",
        examples: ["kit approvals list", "kit approvals approve approval_01M7YDVQ9YE3TW10E60N67AXVR"],
        commands: [
          {
            name: "list",
            summary: "List the calls that wait, of all agents or of one",
            load: async () => (await import("./commands/approvals.ts")).approvalsList,
          },
          {
            name: "show",
            summary: "Show a call: the change of its file, or its arguments",
            load: async () => (await import("./commands/approvals-show.ts")).approvalsShow,
          },
          {
            name: "approve",
            summary: "Approve a call",
            load: async () => (await import("./commands/approvals.ts")).approvalsApprove,
          },
          {
            name: "deny",
            summary: "Deny a call; the model reads the reason",
            load: async () => (await import("./commands/approvals.ts")).approvalsDeny,
          },
          {
            name: "answer",
            summary: "Answer the question of a tool",
            load: async () => (await import("./commands/approvals.ts")).approvalsAnswer,
          },
          {
            name: "allow",
            summary: "Let such calls run from now on, by a rule in kit.toml",
            load: async () => (await import("./commands/approvals.ts")).approvalsAllow,
          },
          {
            name: "accept",
            summary: "Let kit load a file that an agent has written",
            load: async () => (await import("./commands/approvals.ts")).approvalsAccept,
          },
        ],
      },
      {
        name: "sessions",
        summary: "Sessions of agents: list, prune",
        examples: ["kit sessions list", "kit sessions prune --older-than 30d --dry-run"],
        commands: [
          {
            name: "list",
            summary: "List the sessions, with the time of their last use",
            load: async () => (await import("./commands/sessions.ts")).sessionsList,
          },
          {
            name: "prune",
            summary: "Remove sessions that have not been used for long",
            load: async () => (await import("./commands/sessions.ts")).sessionsPrune,
          },
        ],
      },
      {
        name: "sandboxes",
        summary: "Machines of vendors that agents work on: list, prune, diff, apply",
        examples: ["kit sandboxes list", "kit sandboxes diff fixer pr-42"],
        commands: [
          {
            name: "list",
            summary: "List the machines of this project",
            load: async () => (await import("./commands/sandboxes.ts")).sandboxesList,
          },
          {
            name: "prune",
            summary: "Remove machines that no session uses",
            load: async () => (await import("./commands/sandboxes.ts")).sandboxesPrune,
          },
          {
            name: "diff",
            summary: "Show what a session has changed on its machine",
            load: async () => (await import("./commands/sandboxes.ts")).sandboxesDiff,
          },
          {
            name: "apply",
            summary: "Apply what a session has changed to the project",
            load: async () => (await import("./commands/sandboxes.ts")).sandboxesApply,
          },
        ],
      },
      {
        name: "cluster",
        summary: "Show the machines that share the work, and what is wrong with them",
        load: async () => (await import("./commands/cluster.ts")).cluster,
      },
    ],
  },
];

export const commandTable: readonly AnyEntry[] = chapters.flatMap(({ commands }) => commands);
