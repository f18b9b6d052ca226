import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { sharedEngineOf } from "../../app/config/engine-config.ts";
import type { Retention } from "../../app/service/retention.ts";
import { toTimes } from "../../base/time-range.ts";
import { sessionOrders, sessionStatuses } from "../../protocol/enums.ts";
import type { GuidelineUsage, GuidelineUsageQuery } from "../../protocol/guideline-usage.ts";
import type { TouchedSession, TouchedSessionPage } from "../../protocol/session-entry.ts";
import type {
  PruneBody,
  PrunedPage,
  PruneFailure,
  SessionStatus,
  SessionsQuery,
} from "../../protocol/session-page.ts";
import type { SessionListing } from "../../stores/contract.ts";
import { asText, parseSessionOrder, parseSessionStatus, wholeNumber } from "../choices.ts";
import { clientLocator, urlOption } from "../client/open-client.ts";
import { type Command, type CommandContext, defineCommand, type ExitCode, flag, option } from "../command.ts";
import { moreText, searchOption, timeOptions } from "../list-options.ts";
import { type Column, count, printTable, timeColumn } from "../print/table.ts";
import { usageError } from "../report-error.ts";
import { withProject } from "../with-project.ts";

const details =
  "Asks the server that runs for this project; without a server it works on the state on disk. Agents with their own session store are left out.";

export const sessionsList: Command = defineCommand({
  options: {
    search: searchOption,
    status: option("--status <status>", `Only ${sessionStatuses.join(", ")}`, parseSessionStatus),
    agent: option("-a, --agent <name>", "Only those of this agent", asText),
    ...timeOptions,
    order: option("--order <order>", `${sessionOrders.join(", ")} (default recent)`, parseSessionOrder),
    parents: flag("--parents", "Without the sessions of tasks"),
    limit: option("-n, --limit <number>", "The most to list (default 50)", wholeNumber(1, 1_000)),
    cursor: option("--cursor <cursor>", "Start at the next_cursor of an earlier --json", asText),
    url: urlOption,
  },
  examples: [
    "kit sessions list",
    "kit sessions list --search refund --since 2d",
    "kit sessions list -n 1000 --json",
  ],
  details: `Lists sessions with title, state and cost, the last used first. ${details}`,
  run: ({ options }, context) =>
    withSessionAdmin(context, options.url, async (admin) => {
      const { url: _, limit = 50, order = "recent", parents: parents_only, ...filter } = options;
      const page = await admin.list({ ...filter, limit, order, parents_only, count: true });
      const { output } = context;
      if (context.json) output.json(page);
      else if (page.sessions.length === 0) output.note("No session to show.");
      else printTable(output, page.sessions, listColumns);
      if (!context.json && page.next_cursor !== undefined) output.note(moreText(page.total));
    }),
});

export const sessionsPrune: Command = defineCommand({
  options: {
    olderThan: option("--older-than <time>", "Not used for this long: 12h, 30d or 8w", parseAge),
    dryRun: flag("--dry-run", "Print what would be removed, and remove nothing"),
    url: urlOption,
  },
  examples: ["kit sessions prune --older-than 30d --dry-run", "kit sessions prune --older-than 30d"],
  details: `Removes sessions that have not been used for that long, with their subtasks and workspaces. A session that is running, waits for something or has a listener stays. ${details}`,
  run: ({ options }, context) => {
    const { olderThan, dryRun = false } = options;
    if (olderThan === undefined)
      throw usageError("--older-than is missing.", "Such as --older-than 30d; --dry-run removes nothing.");
    return withSessionAdmin(context, options.url, (admin) =>
      prune(admin, { older_than_seconds: olderThan, dry_run: dryRun }, context),
    );
  },
});

async function prune(admin: SessionAdmin, selection: PruneBody, context: CommandContext): Promise<ExitCode> {
  const { output, json } = context;
  const removed: TouchedSession[] = [];
  const failed: PruneFailure[] = [];
  let in_use = 0;
  let cursor: string | undefined;
  do {
    const page = await admin.prune({ ...selection, ...(cursor === undefined ? {} : { cursor }) });
    removed.push(...page.removed);
    in_use += page.in_use;
    // Older servers do not send it.
    failed.push(...(page.failed ?? []));
    cursor = page.next_cursor;
    context.signal.throwIfAborted();
  } while (cursor !== undefined);
  const dry_run = selection.dry_run === true;
  if (json) output.json({ dry_run, removed, in_use, failed });
  else {
    if (removed.length > 0) printTable(output, removed, columns);
    const removedText = count(removed.length, "session");
    output.note(dry_run ? `${removedText} would be removed.` : `Removed ${removedText}.`);
    if (in_use > 0) output.note(`${count(in_use, "session")} of that age stay: they are in use.`);
    for (const { agent, instance_id, session, error } of failed)
      output.note(`${agent}/${instance_id} ${session}: ${error.message}`);
  }
  return failed.length === 0 ? 0 : 1;
}

const unitSeconds: Readonly<Record<string, number>> = { h: 3_600, d: 86_400, w: 604_800 };

function parseAge(text: string): number {
  const [, number, unit = ""] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const seconds = Number(number) * (unitSeconds[unit] ?? Number.NaN);
  // The range that the server accepts: from an hour to ten years.
  if (seconds >= 3_600 && seconds <= 315_360_000) return seconds;
  throw usageError(`'${text}' is not a time from 1h to 3650d.`, "Such as 12h, 30d or 8w.");
}

const columns: readonly Column<TouchedSession>[] = [
  { header: "INSTANCE", value: ({ agent, instance_id }) => `${agent}/${instance_id}`, style: () => "cyan" },
  { header: "SESSION", value: ({ session }) => session },
  { header: "ENTRIES", value: ({ position }) => String(position) },
  timeColumn("TOUCHED", ({ touched_at }) => touched_at),
];

const listColumns: readonly Column<ListedPage["sessions"][number]>[] = [
  ...columns,
  {
    header: "STATUS",
    value: ({ status, state }) => status ?? state ?? "",
    style: ({ status, state }) => ((status ?? state) === "failed" ? "red" : undefined),
  },
  {
    header: "COST",
    value: ({ cost }) => (typeof cost === "number" ? `$${cost.toFixed(cost < 1 ? 4 : 2)}` : ""),
    align: "right",
  },
  { header: "TITLE", value: ({ title }) => title ?? "", wraps: true },
];

type ListedPage = Omit<TouchedSessionPage, "sessions"> & {
  /** A list without a server has no `status`, but the stored `state`. */
  readonly sessions: readonly (TouchedSession & { readonly status?: SessionStatus | undefined })[];
};

/** Lists the sessions of a store that no server works on: nothing runs or waits there. */
async function listStored(
  { list }: Pick<Retention, "list">,
  listing: SessionListing,
  status: SessionStatus | undefined,
): Promise<ListedPage> {
  const isStored = status === "idle" || status === "failed" || status === "stopped";
  const selected = isStored ? { state: status } : status === undefined ? {} : { only: [] };
  return await list({ ...listing, ...selected });
}

/** Access to a project's sessions: through a server or, where none runs, through its store. */
interface SessionAdmin {
  usage(query: GuidelineUsageQuery): Promise<GuidelineUsage>;
  list(query: SessionsQuery & { readonly limit: number }): Promise<ListedPage>;
  prune(body: PruneBody): Promise<PrunedPage>;
}

export async function withSessionAdmin(
  context: CommandContext,
  url: string | undefined,
  use: (admin: SessionAdmin) => Promise<ExitCode>,
): Promise<ExitCode> {
  const client = await (await clientLocator(context, url))();
  if (client !== undefined) {
    const { sessions, guidelines } = client;
    return await use({
      list: (query) => sessions.list(query),
      prune: (body) => sessions.prune(body),
      usage: (query) => guidelines.usage(query),
    });
  }
  return await withProject(
    context,
    async ({ project, loaded }) => {
      const { openProjectService } = await import("../../app/service/open-project-service.ts");
      const folder = resolve(project.root, loaded.config.engine?.folder ?? join(".kit", "engine"));
      // The engine starts no work; it only says which sessions have waiting work.
      const isShared = sharedEngineOf(loaded.config, loaded.environment) !== undefined;
      const engine = isShared ? "configured" : existsSync(folder) ? folder : "memory";
      await using opened = new AsyncDisposableStack();
      const service = await openProjectService({
        project,
        loaded,
        engine,
        works: false,
        code: loaded.untrustedCode !== true,
      });
      opened.defer(() => service.close({ timeoutMs: 0 }));
      const retention = service.sessions;
      return await use({
        usage: ({ agent, ...query }) => service.guidelineUsage({ agent, since: toTimes(query).since }),
        list: ({ status, ...query }) => listStored(retention, { ...query, ...toTimes(query) }, status),
        prune: ({ older_than_seconds, dry_run = false, cursor }) =>
          retention.prune({ olderThanMs: older_than_seconds * 1_000, dryRun: dry_run, cursor }),
      });
    },
    { sendsKeys: true },
  );
}
