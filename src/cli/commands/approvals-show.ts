import { openClient, urlOption } from "../client/open-client.ts";
import { type Command, defineCommand } from "../command.ts";
import { createFileReader, printWaitingCall } from "../print/print-call.ts";
import { safeLine } from "../text/safe-text.ts";
import { decisionArguments, findWaiting } from "./approvals.ts";

export const approvalsShow: Command = defineCommand({
  arguments: decisionArguments,
  options: { url: urlOption },
  examples: ["kit approvals show 60N67AXVR"],
  details:
    "Shows the whole call: for write and edit the change to the present file, for other tools all arguments. Asks the server that runs for this project, or the one named with --url.",
  run: async ({ args: [id = ""], options: { url } }, context) => {
    const { output } = context;
    const client = await openClient(context, url);
    const call = await findWaiting(client, id);
    if (context.json) output.json(call);
    else {
      output.note(`${safeLine(`${call.agent}/${call.instance_id}`)}, ${safeLine(call.approval_id)}`);
      const page = { note: output.line, noteStyle: output.style };
      const readFile = createFileReader((path) => client.files.lines({ path }));
      await printWaitingCall(call, { output: page, mask: (text) => text, readFile });
    }
  },
});
