import type { DispatchRecord } from "../../protocol/dispatch.ts";
import { dispatchStatuses } from "../../protocol/enums.ts";
import { agentName, asText, parseDispatchStatus, wholeNumber } from "../choices.ts";
import { urlOption } from "../client/open-client.ts";
import { printCancelled, withProjectWork, workCommand, workDetails } from "../client/project-work.ts";
import { type Command, type CommandContext, defineCommand, option } from "../command.ts";
import { moreText, searchOption, timeOptions } from "../list-options.ts";
import { causeText } from "../print/cause.ts";
import { type Column, printFields, printTable, timeColumn } from "../print/table.ts";
import { failureLines } from "../report-error.ts";
import { safeLines, withDistance } from "../text/safe-text.ts";

export const dispatchesList: Command = defineCommand({
  options: {
    status: option("--status <status>", `Only ${dispatchStatuses.join(", ")}`, parseDispatchStatus),
    agent: option("-a, --agent <name>", "Only those of this agent", agentName),
    id: option("--id <id>", "Only those of this instance", asText),
    search: searchOption,
    ...timeOptions,
    limit: option("-n, --limit <number>", "The most to list (default 50)", wholeNumber(1, 1_000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
    url: urlOption,
  },
  examples: ["kit dispatches list", "kit dispatches list --status failed"],
  details: `Newest first; failed ones are the dead letters. ${workDetails}`,
  run: ({ options }, context) =>
    withProjectWork(context, options.url, async (work) => {
      const { url: _, id: instance_id, ...query } = options;
      const page = await work.listDispatches({ ...query, instance_id, count: true });
      if (context.json) context.output.json(page);
      else if (page.dispatches.length === 0)
        context.output.note("No dispatch to show. 'kit invoke … --dispatch' makes one.");
      else printTable(context.output, page.dispatches, columns);
      if (!context.json && page.next_cursor !== undefined) context.output.note(moreText(page.total));
    }),
});

const usage = "<dispatch-id>";

export const dispatchesShow: Command = workCommand(
  { usage, example: "kit dispatches show dispatch_01M7Y2ZJQD7P1XW6CX5CKK3KT8", details: "" },
  async (work, id, context) => show(await work.getDispatch(id), context),
);

export const dispatchesRetry: Command = workCommand(
  {
    usage,
    example: "kit dispatches retry dispatch_01M7Y2ZJQD7P1XW6CX5CKK3KT8",
    details: "Puts it at the end of its session's queue.",
  },
  async (work, id, context) => show(await work.retryDispatch(id), context),
);

export const dispatchesCancel: Command = workCommand(
  { usage, example: "kit dispatches cancel dispatch_01M7Y2ZJQD7P1XW6CX5CKK3KT8", details: "" },
  async (work, id, context) => printCancelled(await work.cancelDispatch(id), context),
);

const styles = {
  completed: "green",
  failed: "red",
  cancelled: "yellow",
  running: "cyan",
  queued: "dim",
} as const;

const columns: readonly Column<DispatchRecord>[] = [
  { header: "DISPATCH", value: ({ dispatch_id }) => dispatch_id, style: () => "cyan" },
  { header: "INSTANCE", value: ({ agent, instance_id }) => `${agent}/${instance_id}`, wraps: true },
  { header: "STATUS", value: ({ status }) => status, style: ({ status }) => styles[status] },
  timeColumn("ACCEPTED", ({ accepted_at }) => accepted_at),
  { header: "ERROR", value: ({ error }) => error?.message ?? "", style: () => "red", wraps: true },
];

function show(record: DispatchRecord, { output, json }: CommandContext): undefined {
  if (json) {
    output.json(record);
    return;
  }
  printFields(output, [
    ["dispatch", record.dispatch_id],
    ["instance", `${record.agent}/${record.instance_id}`],
    ["session", record.session],
    ["status", record.status],
    ["started by", causeText(record.cause)],
    ["attempts", String(record.attempts)],
    ["accepted", withDistance(record.accepted_at)],
    ["started", withDistance(record.started_at)],
    ["ended", withDistance(record.ended_at)],
    ["next try", withDistance(record.next_attempt_at)],
    ["key", record.idempotency_key],
    ["error", failureLines(record.error)],
  ]);
  output.line();
  output.line(
    safeLines(typeof record.input === "string" ? record.input : JSON.stringify(record.input, undefined, 2)),
  );
  const answer = toAnswer(record.result);
  if (answer !== undefined) output.line(`\n${safeLines(answer)}`);
}

/** The agent's answer. */
function toAnswer(result: unknown): string | undefined {
  if (typeof result !== "object" || result === null || !("text" in result)) return undefined;
  return typeof result.text === "string" ? result.text : undefined;
}
