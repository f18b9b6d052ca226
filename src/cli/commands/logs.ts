import type { RunRecord } from "../../protocol/run.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { createActivityLog } from "../dev/activity-log.ts";
import { urlOption } from "../remote/open-client.ts";
import { type ProjectWork, withProjectWork } from "../remote/project-work.ts";
import { causeLines } from "../render/failure-lines.ts";
import { printRuns, runStyles, waitLines } from "../render/print-runs.ts";
import { createReceiptLines } from "../render/receipt-lines.ts";
import { safeLine, toSafeJsonLine } from "../text/safe-text.ts";
import { wholeNumber } from "../values.ts";

export const logs: Command = defineCommand({
  arguments: [{ usage: "[run-id]", description: "A run; without one, the newest runs are listed" }],
  options: {
    follow: flag("-f, --follow", "Go on until the run has ended"),
    after: option("--after <index>", "Start behind this event (default 0)", wholeNumber(0, 999_999_999)),
    receipts: flag("--receipts", "Say of each turn all that was in front of the model"),
    limit: option("-n, --limit <number>", "Runs to list (default 20)", wholeNumber(1, 1_000)),
    url: urlOption,
  },
  examples: [
    "kit logs",
    "kit logs run_01M7Y2ZJNPKAA8N21S3HAQ99FR --follow",
    "kit logs run_01M7Y2ZJNPKAA8N21S3HAQ99FR --receipts",
  ],
  details:
    "Asks the server that runs for this project; without one it reads what is on disk. With --follow it waits for the next server when one ends. Rules, specs, skills and memories are named when they come before the model; --receipts names all of them with each turn. With --json every event is a line, with what is new in each receipt. Exits with 1 when the run has failed.",
  run: ({ args: [runId], options }, context) =>
    withProjectWork(context, options.url, async (work) => {
      if (runId === undefined) {
        await listRuns(work, context, options.limit ?? 20);
        return 0;
      }
      await printEvents(work, context, {
        runId,
        after: options.after ?? 0,
        follow: options.follow === true,
        receipts: options.receipts === true,
      });
      const run = await work.getRun(runId);
      if (!context.json) printEnd(run, context);
      return run.status === "failed" ? 1 : 0;
    }),
});

async function listRuns(work: ProjectWork, context: CommandContext, limit: number): Promise<void> {
  const page = await work.listRuns({ limit });
  if (context.json) context.output.json(page);
  else printRuns(context.output, page.runs);
}

interface ShownRun {
  readonly runId: string;
  readonly after: number;
  readonly follow: boolean;
  readonly receipts: boolean;
}

async function printEvents(
  work: ProjectWork,
  context: CommandContext,
  { runId, receipts, ...options }: ShownRun,
): Promise<void> {
  const { output, signal } = context;
  const receiptLines = createReceiptLines({ whole: receipts });
  let time = "";
  const show = createActivityLog({
    runId,
    output: { noteStyle: output.style },
    log: (text) => output.line(`${output.style("dim", time)}  ${text}`),
  });
  const onGone = (): void =>
    output.note(
      output.noteStyle("yellow", "The server is gone. The log goes on when the next one is there."),
    );
  for await (const event of work.runEvents(runId, { ...options, signal, onGone })) {
    time = event.timestamp;
    if (context.json) {
      output.write(`${toSafeJsonLine(event)}\n`);
      continue;
    }
    show(event);
    for (const line of receiptLines(event))
      output.line(`${output.style("dim", time)}  ${output.style("dim", safeLine(line))}`);
  }
}

function printEnd(run: RunRecord, { output }: CommandContext): void {
  const { status, error, event_count } = run;
  const waits = status === "waiting" ? ` for ${waitLines(run).join(", ")}` : "";
  const what = safeLine(`${status}${error === undefined ? waits : `: ${error.message}`}`);
  output.note(output.noteStyle(runStyles[status], `${what} (${event_count} events)`));
  for (const line of causeLines(error?.cause)) output.note(`  ${safeLine(line)}`);
}
