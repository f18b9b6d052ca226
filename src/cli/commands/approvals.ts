import { KitError } from "../../base/kit-error.ts";
import type { ApprovalRequest } from "../../protocol/approval.ts";
import type { ApprovalBody } from "../../protocol/http/approval-schemas.ts";
import { type Command, type CommandContext, defineCommand, option } from "../command.ts";
import { openClient, urlOption } from "../remote/open-client.ts";
import { callLine } from "../run/event-lines.ts";
import { type Column, printTable } from "../table.ts";
import { asText } from "../values.ts";

const instanceArguments = [
  { usage: "<agent>", description: "An agent, as 'kit routes' lists it" },
  { usage: "<id>", description: "Its instance" },
] as const;
const decisionArguments = [
  ...instanceArguments,
  { usage: "<approval-id>", description: "As the list and the event approval_request name it" },
] as const;
const details = "Asks the server that runs for this project, or the one named with --url.";
const exampleId = "approval_01M7YDVQ9YE3TW10E60N67AXVR";

export const approvalsList: Command = defineCommand({
  arguments: [
    { usage: "[agent]", description: "Only of this agent" },
    { usage: "[id]", description: "Only of this instance" },
  ],
  options: { url: urlOption },
  examples: ["kit approvals list", "kit approvals list reviewer pr-42"],
  details: `Oldest first; --json has every argument of a call whole. ${details}`,
  run: async ({ args: [agent, id], options }, context) => {
    const client = await openClient(context, options.url);
    const approvals = await client.approvals.list({
      ...(agent === undefined ? {} : { agent }),
      ...(id === undefined ? {} : { instance_id: id }),
    });
    if (context.json) context.output.json({ approvals });
    else if (approvals.length === 0) context.output.note("No call waits for approval.");
    else printTable(context.output, approvals, columns);
    return 0;
  },
});

export const approvalsApprove: Command = defineCommand({
  arguments: decisionArguments,
  options: { url: urlOption },
  examples: [`kit approvals approve reviewer pr-42 ${exampleId}`],
  details,
  run: ({ args, options }, context) => decide(args, { approved: true }, { context, url: options.url }),
});

export const approvalsDeny: Command = defineCommand({
  arguments: decisionArguments,
  options: { reason: option("--reason <text>", "Told to the model", asText), url: urlOption },
  examples: [`kit approvals deny reviewer pr-42 ${exampleId} --reason "Use the test account."`],
  details,
  run: ({ args, options: { reason, url } }, context) =>
    decide(args, { approved: false, ...(reason === undefined ? {} : { reason }) }, { context, url }),
});

async function decide(
  [agent = "", id = "", approval_id = ""]: readonly string[],
  decision: ApprovalBody,
  { context, url }: { readonly context: CommandContext; readonly url: string | undefined },
): Promise<0> {
  const client = await openClient(context, url);
  await client.agents.approve(agent, { id, approval_id, ...decision }).catch((error: unknown) => {
    throw explain(error, `'kit approvals list ${agent} ${id}' lists what waits.`);
  });
  if (context.json) context.output.json({ approved: decision.approved });
  else context.output.note(decision.approved ? "Approved." : "Denied.");
  return 0;
}

function explain(error: unknown, hint: string): unknown {
  if (!(error instanceof KitError) || error.code !== "not_found") return error;
  return new KitError({ code: error.code, message: error.message, hint, cause: error });
}

const columns: readonly Column<ApprovalRequest>[] = [
  { header: "APPROVAL", value: ({ approval_id }) => approval_id, style: () => "cyan" },
  { header: "INSTANCE", value: ({ agent, instance_id }) => `${agent}/${instance_id}` },
  { header: "SESSION", value: ({ session }) => session },
  { header: "SINCE", value: ({ requested_at }) => requested_at, style: () => "dim" },
  { header: "CALL", value: ({ tool, args }) => callLine(tool, args), cut: "end" },
];
