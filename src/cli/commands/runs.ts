import { runStatuses } from "../../protocol/enums.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { asText, parseJson, parseRunStatus, wholeNumber, workflowName } from "../choices.ts";
import { urlOption } from "../client/open-client.ts";
import { printCancelled, withProjectWork, workCommand, workDetails, workId } from "../client/project-work.ts";
import { type Command, type CommandContext, defineCommand, option } from "../command.ts";
import { moreText, searchOption, timeOptions } from "../list-options.ts";
import { causeText } from "../print/cause.ts";
import { printRuns, waitLines } from "../print/runs.ts";
import { printFields } from "../print/table.ts";
import { failureLines } from "../report-error.ts";
import { safeLine, safeLines, span, toSafeJson, withDistance } from "../text/safe-text.ts";

const usage = "<run-id>";

export const runsList: Command = defineCommand({
  options: {
    status: option("--status <status>", `Only ${runStatuses.join(", ")}`, parseRunStatus),
    workflow: option("-w, --workflow <name>", "Only those of this workflow", workflowName),
    search: searchOption,
    ...timeOptions,
    limit: option("-n, --limit <number>", "The most to list (default 50)", wholeNumber(1, 1_000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
    url: urlOption,
  },
  examples: ["kit runs list", "kit runs list --status failed --since 2d --search refund"],
  details: `Newest first. ${workDetails}`,
  run: ({ options }, context) =>
    withProjectWork(context, options.url, async (work) => {
      const { url: _, ...query } = options;
      const page = await work.listRuns({ ...query, count: true });
      if (context.json) context.output.json(page);
      else printRuns(context.output, page.runs);
      if (!context.json && page.next_cursor !== undefined) context.output.note(moreText(page.total));
    }),
});

export const runsShow: Command = workCommand(
  {
    usage,
    example: "kit runs show run_01M7Y2ZJNPKAA8N21S3HAQ99FR",
    details: "Prints its record, with payload and result; 'kit logs' shows its events.",
  },
  async (work, id, context) => show(await work.getRun(id), context),
);

export const runsSignal: Command = defineCommand({
  arguments: [
    workId(usage),
    { usage: "<name>", description: "The name that the workflow passes to ctx.waitFor" },
  ],
  options: {
    payload: option("--payload <json>", "The value that waitFor returns: any JSON", parseJson),
    url: urlOption,
  },
  examples: [`kit runs signal 3HAQ99FR approval --payload '{"approved": true}'`],
  details: `A signal that nothing waits for yet is stored. ${workDetails}`,
  run: ({ args: [id = "", name = ""], options }, context) =>
    withProjectWork(context, options.url, async (work) => {
      const { payload } = options;
      // A key may be allowed to signal a run without being allowed to read it.
      const run = await work.getRun(id).catch(() => undefined);
      await work.signalRun(id, { name, payload });
      if (context.json) context.output.json({ status: "accepted" });
      else context.output.note(acceptedText(run, name));
    }),
});

export const runsCancel: Command = workCommand(
  { usage, example: "kit runs cancel run_01M7Y2ZJNPKAA8N21S3HAQ99FR", details: "" },
  async (work, id, context) => printCancelled(await work.cancelRun(id), context),
);

export const runsRetry: Command = workCommand(
  {
    usage,
    example: "kit runs retry run_01M7Y2ZJNPKAA8N21S3HAQ99FR",
    details:
      "Continues a run that has failed: its finished steps are not repeated, and its attempts start anew.",
  },
  async (work, id, { json, output }) => {
    const record = await work.retryRun(id);
    if (json) output.json(record);
    else output.note("Queued again.");
  },
);

export const runsRerun: Command = workCommand(
  {
    usage,
    example: "kit runs rerun run_01M7Y2ZJNPKAA8N21S3HAQ99FR",
    details:
      "Prints the id of the new run. It starts from the beginning, and repeats what the earlier run had done.",
  },
  async (work, id, { json, output }) => {
    const receipt = await work.rerun(id);
    if (json) output.json(receipt);
    else output.line(receipt.run_id);
  },
);

function acceptedText(run: RunRecord | undefined, name: string): string {
  const waits = run?.waiting_for ?? [];
  if (run === undefined || waits.some(({ signal }) => signal === name)) return "Accepted.";
  const waitText = waits.length === 0 ? "" : ` It waits for ${waitLines(run).join(", ")}.`;
  return safeLine(`Accepted and stored: nothing in the run waits for ${name} yet.${waitText}`);
}

function show(record: RunRecord, { output, json }: CommandContext): undefined {
  if (json) {
    output.json(record);
    return;
  }
  const { error, duration_ms } = record;
  printFields(output, [
    ["run", record.run_id],
    ["workflow", record.workflow],
    ["status", record.status],
    ["started by", causeText(record.cause)],
    ["waits for", waitLines(record)],
    ["problem", failureLines(record.problem)],
    ["accepted", withDistance(record.accepted_at)],
    ["started", withDistance(record.started_at)],
    ["ended", withDistance(record.ended_at)],
    ["took", duration_ms === undefined ? undefined : span(duration_ms)],
    ["events", String(record.event_count)],
    ["error", failureLines(error)],
    ["payload", JSON.stringify(record.payload)],
  ]);
  if (record.result === undefined) return;
  output.line();
  output.line(typeof record.result === "string" ? safeLines(record.result) : toSafeJson(record.result));
}
