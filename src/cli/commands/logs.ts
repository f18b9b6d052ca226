import type { KitEvent } from "../../protocol/event.ts";
import { createReceiptReader } from "../../protocol/read-records.ts";
import type { ReceiptItem } from "../../protocol/receipt.ts";
import type { RunRecord } from "../../protocol/run.ts";
import { wholeNumber } from "../choices.ts";
import { urlOption } from "../client/open-client.ts";
import { type ProjectWork, withProjectWork } from "../client/project-work.ts";
import { type Command, type CommandContext, defineCommand, flag, option } from "../command.ts";
import { createActivityLog } from "../dev/activity-log.ts";
import { printRuns, runStyles, waitLines } from "../print/runs.ts";
import { count } from "../print/table.ts";
import { causeLines } from "../report-error.ts";
import { safeLine, toSafeJsonLine } from "../text/safe-text.ts";

export const logs: Command = defineCommand({
  arguments: [{ usage: "[run-id]", description: "A run; without one, the newest runs are listed" }],
  options: {
    follow: flag("-f, --follow", "Keep printing until the run has ended"),
    after: option(
      "--after <index>",
      "Start after the event with this index (default 0)",
      wholeNumber(0, 999_999_999),
    ),
    receipts: flag("--receipts", "List for each turn everything that was in the model's context"),
    limit: option("-n, --limit <number>", "Runs to list (default 20)", wholeNumber(1, 1_000)),
    url: urlOption,
  },
  examples: [
    "kit logs",
    "kit logs run_01M7Y2ZJNPKAA8N21S3HAQ99FR --follow",
    "kit logs run_01M7Y2ZJNPKAA8N21S3HAQ99FR --receipts",
  ],
  details:
    "Asks the server that runs for this project; without one it reads the state on disk. With --follow it waits for the next server when one stops. Names rules, specs, skills and memories when a model first gets them; --receipts names all of them with each turn. With --json prints an event per line, with the new items of each receipt. Exits with 1 if the run has failed.",
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
  const receiptLines = createReceiptLines({ isWhole: receipts });
  let time = "";
  const show = createActivityLog({
    runId,
    output: { noteStyle: output.style },
    log: (text) => output.line(`${output.style("dim", time)}  ${text}`),
  });
  const onGone = (): void =>
    output.note(
      output.noteStyle("yellow", "The server has stopped. The log continues when the next one starts."),
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
  const description = safeLine(`${status}${error === undefined ? waits : `: ${error.message}`}`);
  output.note(output.noteStyle(runStyles[status], `${description} (${event_count} events)`));
  for (const line of causeLines(error?.cause)) output.note(`  ${safeLine(line)}`);
}

/** The most items to name on one line. */
const maxNamed = 5;

/**
 * The lines about a turn's context: its new items on one line, or with `whole` every item on a line of its own. Also
 * names what changed the beginning of the prompt, so that the provider's cache was lost.
 */
export function createReceiptLines({
  isWhole,
}: {
  readonly isWhole: boolean;
}): (event: KitEvent) => readonly string[] {
  // Turn ids are unique over sessions and tasks, so one reader serves all of them.
  const read = createReceiptReader();
  return (event) => {
    if (event.type !== "turn_request" || event.receipt === undefined) return [];
    const { receipt, prefix, turn_id = "" } = event;
    const list = read(turn_id, receipt);
    const changed = prefix?.changed ?? [];
    const lines = changed.length === 0 ? [] : [`  prompt cache lost: ${changed.join(", ")}`];
    const { left_out = [] } = receipt;
    if (left_out.length > 0 && (isWhole || receipt.before === undefined))
      lines.push(`  rules left out: ${left_out.join(", ")}`);
    const total = `${count(receipt.items, "item")}, about ${receipt.tokens.toLocaleString("en")} tokens`;
    if (isWhole) {
      const missing = receipt.items - list.length;
      const moreLines = missing > 0 ? [`    and ${missing} more`] : [];
      return [
        ...lines,
        `  in the model's context: ${total}`,
        ...list.map((item) => `    ${itemLine(item)}`),
        ...moreLines,
      ];
    }
    const added = receipt.added ?? [];
    if (added.length === 0) return lines;
    const listed = added.slice(0, maxNamed).map(itemPlace).join(", ");
    const rest = added.length + (receipt.omitted ?? 0) - Math.min(added.length, maxNamed);
    const label = receipt.before === undefined ? "in the model's context" : "new in the model's context";
    return [...lines, `  ${label}: ${listed}${rest > 0 ? ` and ${rest} more` : ""} (in all ${total})`];
  };
}

function itemLine(item: ReceiptItem): string {
  const name = item.file === undefined || item.id.startsWith(item.file) ? "" : ` ${item.id}`;
  return `${item.kind}${name} ${itemPlace(item)}: ${item.why}, about ${item.tokens.toLocaleString("en")} tokens`;
}

/** `AGENTS.md:8 #money` for a section. */
function itemPlace({ file, id, line }: ReceiptItem): string {
  if (file === undefined) return id;
  const section = id.startsWith(`${file}#`) ? ` ${id.slice(file.length)}` : "";
  return `${file}${line === undefined ? "" : `:${line}`}${section}`;
}
