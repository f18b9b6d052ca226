import { existsSync, realpathSync } from "node:fs";
import { resolve } from "node:path";
import { addTrust, listTrust, removeTrust, type TrustRecord } from "../../app/trust/trust.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import type { Output } from "../print/output.ts";
import { usageError } from "../report-error.ts";
import { safeLine } from "../text/safe-text.ts";
import { loadProjectConfig } from "../with-project.ts";

export const trust: Command = defineCommand({
  arguments: [
    { usage: "[dir]", description: "With --remove: a folder that may be gone; default: this project" },
  ],
  options: {
    list: flag("--list", "List the folders that you trust, and what in them"),
    remove: flag("--remove", "Trust the folder no longer"),
  },
  examples: ["kit trust", "kit trust --list", "kit trust --remove"],
  details:
    "Commands that only list run the code of a project (kit.config.ts, src/agents, …) once you trust its folder, and keys of your environment go to addresses that files of the project name (.env, kit.toml, kit.config.ts) once you trust each. 'kit trust' runs kit.config.ts, trusts the code of the folder and the addresses that it names now, and prints them; kit asks again for an address that is added later. What you trust is kept in $XDG_STATE_HOME/kit/trust, outside of the project. Where no person can be asked, such as in CI and containers, KIT_TRUST=1 trusts the project that kit works on.",
  async run({ args: [folder], options: { list = false, remove = false } }, context) {
    const { output, json, root } = context;
    const { env } = process;
    if (folder !== undefined && !remove)
      throw usageError("Only --remove takes a folder.", "'kit trust --cwd DIR' trusts another one.");
    if (list) {
      const records = listTrust(env);
      if (json) output.json({ folders: records });
      else if (records.length === 0) output.note("You trust no folder yet.");
      for (const record of json ? [] : records) print(record, output);
      return 0;
    }
    if (remove) {
      const path = folder === undefined ? root : resolve(context.cwd, folder);
      const removed = removeTrust(existsSync(path) ? realpathSync(path) : path, env);
      if (json) output.json({ folder: path, removed });
      else
        output.note(
          removed ? `You no longer trust ${safeLine(path)}.` : `You did not trust ${safeLine(path)}.`,
        );
      return 0;
    }
    // With KIT_TRUST, no address would be untrusted.
    delete env.KIT_TRUST;
    const { untrusted = [] } = await loadProjectConfig(context, {
      dotEnv: true,
      runsCode: true,
      mayAsk: false,
    });
    const record = addTrust(root, { code: true, targets: untrusted }, env);
    if (json) output.json(record);
    else print(record, output);
  },
});

function print({ folder, code, targets }: TrustRecord, output: Output): void {
  output.line(safeLine(folder));
  if (code) output.line("  its code");
  for (const target of targets) output.line(`  ${safeLine(target.replace(" ", " to "))}`);
}
