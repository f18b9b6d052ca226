import { type Command, defineCommand } from "../command.ts";
import { printChecks } from "../doctor/print-checks.ts";

export const doctor: Command = defineCommand({
  options: {},
  examples: ["kit doctor", "kit doctor --json"],
  details:
    "✗ marks what stops work, and makes the command end with 1; ! marks what works and is worth a look.",
  run: async (_, context) => {
    const { checkMachine } = await import("../doctor/check-machine.ts");
    const { checkProject } = await import("../doctor/check-project.ts");
    const checks = [...(await checkMachine()), ...(await checkProject(context))];
    const errors = checks.filter((check) => check.status === "error").length;
    if (context.json) context.output.json({ ok: errors === 0, checks });
    else printChecks(context.output, checks);
    return errors === 0 ? 0 : 1;
  },
});
