import { projectTypesFile } from "../../app/sources/write-project-types.ts";
import { KitError } from "../../base/kit-error.ts";
import { type Command, defineCommand, flag } from "../command.ts";
import { updateProjectTypes } from "../dev/update-project-types.ts";

export const types: Command = defineCommand({
  options: { check: flag("--check", "Write nothing; fail when the file is out of date") },
  examples: ["kit types", "kit types --check"],
  details: `Writes ${projectTypesFile}: the names of the agents and workflows with their modules, for new KitClient<typeof import("./${projectTypesFile}")>. Payloads and results are inferred from the modules. 'kit dev' keeps the file in a project with a tsconfig.json.`,
  async run({ options: { check } }, { root, signal, output, json }) {
    const isStale = await updateProjectTypes({ root, signal, check });
    if (check && isStale) {
      throw new KitError({
        code: "conflict",
        message: `${projectTypesFile} is out of date.`,
        hint: "Run 'kit types', and commit the file.",
      });
    }
    if (json) output.json({ path: projectTypesFile, changed: isStale });
    else output.note(isStale ? `Wrote ${projectTypesFile}.` : `${projectTypesFile} is up to date.`);
  },
});
