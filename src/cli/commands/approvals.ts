import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { AgentWrites, type HeldFile } from "../../app/sources/agent-writes.ts";
import { KitError } from "../../base/kit-error.ts";
import type { KitClient } from "../../client/kit-client.ts";
import type { AllowChoices, ApprovalBody, ApprovalRequest } from "../../protocol/approval.ts";
import type { WaitingLogin, WaitingQuery, WaitingSignal } from "../../protocol/waiting.ts";
import { asText, wholeNumber } from "../choices.ts";
import { openClient, urlOption } from "../client/open-client.ts";
import { type Command, type CommandContext, defineCommand, option } from "../command.ts";
import { matchId } from "../find-record.ts";
import { moreText } from "../list-options.ts";
import { callLine } from "../print/event-line.ts";
import { type Column, printTable, timeColumn } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { toAnswer } from "../run/answer-text.ts";
import { fromNow, safeLine } from "../text/safe-text.ts";

export const decisionArguments = [
  {
    usage: "<approval-id>",
    description: "The approval's id or its last characters, as 'kit approvals list' prints them",
  },
] as const;
const details = "Asks the server that runs for this project, or the one named with --url.";
const exampleId = "60N67AXVR";

export const approvalsList: Command = defineCommand({
  arguments: [
    { usage: "[agent]", description: "Only those of this agent", completes: "agent" },
    { usage: "[id]", description: "Only those of this instance" },
  ],
  options: {
    limit: option("-n, --limit <number>", "The most to list (default 50)", wholeNumber(1, 1_000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
    url: urlOption,
  },
  examples: ["kit approvals list", "kit approvals list reviewer pr-42"],
  details: `Oldest first; --json contains the complete arguments of each call. Without an agent, also lists runs that wait for a signal, and MCP servers that need a login. ${details}`,
  run: async ({ args: [agent, id], options }, context) => {
    const { output } = context;
    const files = options.url === undefined ? new AgentWrites(realpathSync(context.root)).held() : [];
    if (!context.json && files.length > 0) {
      output.note(
        "Files that an agent has written, which kit does not load ('kit approvals accept <file>'):",
      );
      printTable(output, files, fileColumns);
    }
    const client = await openClient(context, options.url);
    const { limit, cursor } = options;
    const { approvals, signals, logins, next_cursor, total } =
      agent === undefined
        ? await listAll(client, { limit, cursor })
        : {
            ...(await client.approvals.list({ agent, instance_id: id, limit, cursor })),
            signals: [],
            logins: [],
            total: undefined,
          };
    if (context.json) {
      const next = next_cursor === undefined ? {} : { next_cursor };
      const inbox = agent === undefined ? { signals, logins, total } : {};
      output.json({ approvals, files, ...inbox, ...next });
    } else if (approvals.length === 0) output.note("No call waits for approval.");
    else printTable(output, approvals, columns);
    if (!context.json && next_cursor !== undefined) output.note(moreText(total));
    if (!context.json && signals.length > 0) {
      const [first] = signals;
      output.note(
        `\nRuns that wait for a signal ('kit runs signal ${first?.run_id} ${safeLine(first?.signal ?? "")}'):`,
      );
      printTable(output, signals, signalColumns);
    }
    if (!context.json && logins.length > 0) {
      output.note(
        `\nMCP servers that need a login ('kit mcp login ${logins[0]?.server}' on the server's machine, or the console):`,
      );
      printTable(output, logins, loginColumns);
    }
  },
});

export const approvalsApprove: Command = defineCommand({
  arguments: decisionArguments,
  options: { url: urlOption },
  examples: [`kit approvals approve ${exampleId}`],
  details,
  run: ({ args: [id = ""], options }, context) =>
    decide(id, { approved: true }, { context, url: options.url }),
});

export const approvalsDeny: Command = defineCommand({
  arguments: decisionArguments,
  options: {
    reason: option("--reason <text>", "The reason, which the model is told", asText),
    url: urlOption,
  },
  examples: [`kit approvals deny ${exampleId} --reason "Use the test account."`],
  details,
  run: ({ args: [id = ""], options: { reason, url } }, context) =>
    decide(id, { approved: false, reason }, { context, url }),
});

export const approvalsAnswer: Command = defineCommand({
  arguments: [
    ...decisionArguments,
    {
      usage: "<answer>",
      description: "JSON of the question's schema, which 'kit approvals show' prints, or a text",
    },
  ],
  options: { url: urlOption },
  examples: [`kit approvals answer ${exampleId} '{"guests": 4}'`],
  details: `Answers the question of a tool; 'kit approvals deny' declines it. ${details}`,
  run: async ({ args: [id = "", answer = ""], options: { url } }, context) => {
    const client = await openClient(context, url);
    const { agent, instance_id, approval_id, kind, tool, schema } = await findWaiting(client, id);
    if (kind !== "question")
      throw new KitError({
        code: "invalid_request",
        message: `The call of ${safeLine(tool)} is no question.`,
        hint: `'kit approvals show ${approval_id}' prints it.`,
      });
    const result = toAnswer(answer, schema);
    await client.agents.approve(agent, { id: instance_id, approval_id, approved: true, result });
    if (context.json) context.output.json({ approved: true });
    else context.output.note(`Answered: ${safeLine(`${agent}/${instance_id}: ${tool}`)}`);
  },
});

export const approvalsAllow: Command = defineCommand({
  arguments: decisionArguments,
  options: {
    rule: option("--rule <number>", "Write this one of the rules, and approve the call", wholeNumber(1, 100)),
    url: urlOption,
  },
  examples: [`kit approvals allow ${exampleId}`, `kit approvals allow ${exampleId} --rule 2`],
  details: `Shows the rules that would let such calls run without an approval, the narrowest first, as kit.toml would contain them; --rule writes one of them. A rule waives only the approvals that agent.approvals of kit.toml requires, never those of an agent, a tool or a policy. ${details}`,
  run: async ({ args: [id = ""], options: { rule: number, url } }, context) => {
    const { output } = context;
    const client = await openClient(context, url);
    const request = await findWaiting(client, id);
    refuseUnapprovable(request);
    const { agent, instance_id, approval_id } = request;
    const call = { id: instance_id, approval_id };
    const offered = await client.agents.allowRules(agent, call);
    if (number === undefined) {
      if (context.json) output.json(offered);
      else printChoices(offered, { output, id: approval_id });
      return offered.choices.length > 0 && offered.problem === undefined ? 0 : 1;
    }
    if (offered.problem !== undefined) throw new KitError({ code: "unavailable", message: offered.problem });
    const rule = offered.choices[number - 1]?.rule;
    if (rule === undefined)
      throw usageError(`There is no rule ${number}.`, `'kit approvals allow ${id}' shows them.`);
    const written = await client.agents.allow(agent, { ...call, rule });
    await client.agents.approve(agent, { ...call, approved: true });
    if (context.json) output.json(written);
    else {
      output.note(
        written.toml === ""
          ? `${written.file} has this rule already.`
          : `Added to ${written.file}; it holds from now on${written.applies_to === "this_node" ? " on this machine, on others once they have the file and start again" : ""}:\n${written.toml}`,
      );
      output.note(`Approved: ${safeLine(callLine(request.tool, request.args))}`);
    }
  },
});

function printChoices(
  { choices, problem, file = "kit.toml" }: AllowChoices,
  { output, id }: { readonly output: CommandContext["output"]; readonly id: string },
): void {
  for (const [at, { summary, toml }] of choices.entries())
    output.note(`${at + 1}. ${safeLine(summary)}\n${toml.replace(/^/gm, "     ")}\n`);
  if (problem !== undefined) output.note(problem);
  else
    output.note(`'kit approvals allow ${id} --rule 1' adds the first one to ${file}, and approves the call.`);
}

export const approvalsAccept: Command = defineCommand({
  arguments: [{ usage: "<file...>", description: "Files of this project that an agent has written" }],
  options: {},
  examples: ["git diff src/agents/reviewer.ts", "kit approvals accept src/agents/reviewer.ts"],
  details:
    "kit does not load an agent, workflow, webhook or configuration, nor a file that they import, after an agent has written it, until a person accepts this version. Read it first: it runs with kit's rights and keys. A running 'kit dev' loads it at once. Needs no server.",
  run: async ({ args }, context) => {
    const writes = new AgentWrites(realpathSync(context.root));
    const files = args.map((path) => resolve(context.cwd, path));
    const missing = args.find((_, at) => !statSync(files[at] ?? "", { throwIfNoEntry: false })?.isFile());
    if (missing !== undefined)
      throw usageError(`${missing} is not a file.`, "'kit approvals list' shows the files that wait.");
    for (const file of files) writes.accepted(realpathSync(file));
    if (context.json) context.output.json({ accepted: args });
    else for (const path of args) context.output.note(`Accepted ${path} as it is now.`);
  },
});

async function everyApproval(client: KitClient): Promise<readonly ApprovalRequest[]> {
  const all: ApprovalRequest[] = [];
  let cursor: string | undefined;
  do {
    const page = await client.approvals.list({ limit: 1_000, cursor });
    all.push(...page.approvals);
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return all;
}

async function decide(
  written: string,
  decision: ApprovalBody,
  { context, url }: { readonly context: CommandContext; readonly url: string | undefined },
): Promise<undefined> {
  const client = await openClient(context, url);
  const request = await findWaiting(client, written);
  if (decision.approved) refuseUnapprovable(request);
  const { agent, instance_id, approval_id } = request;
  await client.agents.approve(agent, { id: instance_id, approval_id, ...decision });
  if (context.json) context.output.json({ approved: decision.approved });
  else {
    const call = `${agent}/${instance_id}: ${callLine(request.tool, request.args)}`;
    const verb = decision.approved ? "Approved" : request.kind === "question" ? "Declined" : "Denied";
    context.output.note(`${verb}: ${safeLine(call)}`);
  }
}

/** Throws `invalid_request` for a call that only a result, or an answer, ends. */
function refuseUnapprovable({ kind, tool, approval_id }: ApprovalRequest): void {
  if (kind === "question")
    throw new KitError({
      code: "invalid_request",
      message: `${safeLine(tool)} asks a question, which an answer ends.`,
      hint: `'kit approvals show ${approval_id}' prints it; 'kit approvals answer ${approval_id} <answer>' answers it.`,
    });
  if (kind !== "caller") return;
  throw new KitError({
    code: "invalid_request",
    message: `The caller runs ${safeLine(tool)}, and answers the call with its result.`,
    hint: `'kit approvals deny ${approval_id}' ends the wait without one.`,
  });
}

/** The waiting call that an id, or the end of one, names. Throws `not_found`. */
export async function findWaiting(client: KitClient, written: string): Promise<ApprovalRequest> {
  const waiting = await everyApproval(client);
  const id = matchId(
    written,
    waiting.map(({ approval_id }) => approval_id),
  );
  const request = waiting.find(({ approval_id }) => approval_id === id);
  if (request === undefined) {
    throw new KitError({
      code: "not_found",
      message: `No call waits for approval with the id '${written}': it is decided, expired, aborted or was never there.`,
      hint: "'kit approvals list' lists what waits.",
    });
  }
  return request;
}

/** Lists the calls and the runs that wait for a person, in the pages of one list. */
async function listAll(client: KitClient, query: WaitingQuery) {
  const { items, ...page } = await client.waiting.list(query);
  return {
    ...page,
    approvals: items.flatMap((item) => (item.kind === "call" ? [item.approval] : [])),
    signals: items.flatMap((item) => (item.kind === "signal" ? [item] : [])),
    logins: items.flatMap((item) => (item.kind === "login" ? [item] : [])),
  };
}

const loginColumns: readonly Column<WaitingLogin>[] = [
  { header: "SERVER", value: ({ server }) => server, style: () => "cyan" },
  { header: "HOST", value: ({ host }) => host },
  timeColumn("SINCE", ({ requested_at }) => requested_at),
  { header: "SCOPE", value: ({ scope = "" }) => scope, wraps: true },
];

const fileColumns: readonly Column<HeldFile>[] = [
  { header: "FILE", value: ({ path }) => path, style: () => "cyan" },
  { header: "WRITTEN BY", value: ({ writer }) => `${writer.agent}/${writer.instance_id} (${writer.tool})` },
  { header: "SINCE", value: ({ held_at }) => fromNow(held_at), style: () => "dim" },
];

const columns: readonly Column<ApprovalRequest>[] = [
  { header: "APPROVAL", value: ({ approval_id }) => approval_id, style: () => "cyan" },
  { header: "INSTANCE", value: ({ agent, instance_id }) => `${agent}/${instance_id}`, wraps: true },
  { header: "SESSION", value: ({ session }) => session, wraps: true },
  timeColumn("SINCE", ({ requested_at }) => requested_at),
  {
    header: "CALL",
    value: ({ tool, args, kind, message = "" }) =>
      kind === "question"
        ? `${tool} asks: ${message}`
        : `${callLine(tool, args)}${kind === "caller" ? " (its caller answers)" : ""}`,
    wraps: true,
  },
];

const signalColumns: readonly Column<WaitingSignal>[] = [
  { header: "RUN", value: ({ run_id }) => run_id, style: () => "cyan" },
  { header: "WORKFLOW", value: ({ workflow }) => workflow, wraps: true },
  { header: "SIGNAL", value: ({ signal }) => signal, wraps: true },
  timeColumn("UNTIL", ({ until }) => until),
];
