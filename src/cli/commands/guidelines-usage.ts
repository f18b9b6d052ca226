import type { GuidelineUsage, RuleUsage } from "../../protocol/guideline-usage.ts";
import { asText } from "../choices.ts";
import { urlOption } from "../client/open-client.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { timeOptions } from "../list-options.ts";
import type { Output } from "../print/output.ts";
import { type Column, count, printTable, timeColumn } from "../print/table.ts";
import { withSessionAdmin } from "./sessions.ts";

export const guidelinesUsage: Command = defineCommand({
  options: {
    since: {
      ...timeOptions.since,
      description: "Only turns from this time on: 2h, 30d, or an ISO date or time (default 30d)",
    },
    agent: option("-a, --agent <name>", "Only the sessions of this agent", asText),
    url: urlOption,
  },
  examples: ["kit guidelines usage", "kit guidelines usage --since 7d --agent reviewer --json"],
  details:
    "Adds up the receipts in the logs of sessions: for each section of a rule file, the turns whose prompts had it, its tokens over these turns, their part of all input, and what they cost. Then lists the rules that no turn was shown. Tokens of rules are estimates. Asks the server that runs for this project; without a server it reads the store. Reads every session that was used since then. Agents with their own session store are left out.",
  run: ({ options: { url, ...query } }, context) =>
    withSessionAdmin(context, url, async (admin) => {
      const usage = await admin.usage(query);
      if (context.json) context.output.json(usage);
      else printUsage(context.output, usage);
    }),
});

const usageColumns: readonly Column<RuleUsage>[] = [
  {
    header: "RULE",
    value: ({ rule }) => rule,
    style: () => "cyan",
  },
  { header: "SESSIONS", value: ({ sessions }) => String(sessions), forPeople: () => "" },
  { header: "TURNS", value: ({ turns }) => String(turns), align: "right" },
  { header: "TOKENS", value: ({ tokens }) => tokens.toLocaleString("en"), align: "right" },
  {
    header: "SHARE",
    value: ({ share }) => (share === null ? "" : `${(share * 100).toFixed(1)}%`),
    align: "right",
  },
  {
    header: "COST",
    value: ({ cost }) => (cost === null || cost === 0 ? "" : `$${cost.toFixed(cost < 1 ? 4 : 2)}`),
    align: "right",
  },
  timeColumn("LAST", ({ last_shown }) => last_shown),
  { header: "WHY", value: ({ why }) => why[0] ?? "", wraps: true },
];

const unusedColumns: readonly Column<RuleUsage>[] = [
  ...usageColumns.slice(0, 1),
  {
    header: "LEFT OUT",
    value: ({ turns_left_out }) => (turns_left_out === 0 ? "" : `${turns_left_out}`),
    align: "right",
  },
  { header: "TITLE", value: ({ title }) => title ?? "", wraps: true },
];

function printUsage(
  output: Output,
  { rules, turns, sessions, input_tokens, unlisted, since }: GuidelineUsage,
): void {
  const used = rules.filter((rule) => rule.turns > 0);
  const unused = rules.filter((rule) => rule.turns === 0);
  if (used.length > 0) printTable(output, used, usageColumns);
  const time = since.slice(0, 10);
  const input = `${count(turns, "turn")} in ${count(sessions, "session")} since ${time}, ${input_tokens.toLocaleString("en")} tokens of input.`;
  output.note(output.noteStyle("dim", turns === 0 ? `No turn since ${time}.` : input));
  if (unlisted > 0)
    output.note(
      `${count(unlisted, "item")} of long receipts are counted and not listed, so sums can lack them.`,
    );
  if (unused.length === 0 || turns === 0) return;
  output.note("");
  output.note(`${count(unused.length, "rule")} that no turn was shown:`);
  printTable(output, unused, unusedColumns);
}
