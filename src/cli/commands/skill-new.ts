import { schemaKeys } from "../../app/sources/load-roles.ts";
import { KitError } from "../../base/kit-error.ts";
import { faultOfSkillName } from "../../guidelines/skills/skill-format.ts";
import { slugOf } from "../../specs/model/block-title.ts";
import { type Command, defineCommand, option } from "../command.ts";
import { writeTemplate } from "../init/write-template.ts";
import { usageError } from "../report-error.ts";

export const skillNew: Command = defineCommand({
  arguments: [{ usage: "<name>", description: "The skill's name: lower case, words joined by hyphens" }],
  options: {
    description: option(
      "-d, --description <text>",
      "The purpose of the skill, in one sentence",
      (text) => text,
    ),
  },
  examples: ["kit skill new release-notes", 'kit skill new triage --description "Sorts new issues."'],
  details: "Writes .agents/skills/<name>/SKILL.md. Agents of the project then run it by name.",
  async run({ args: [name = ""], options }, context) {
    const { output, root } = context;
    const fault = name === "" ? "must not be empty" : faultOfSkillName(name);
    if (fault !== undefined) {
      const near = slugOf(name)
        .slice(0, 64)
        .replace(/[^a-z0-9]+/g, "-")
        .replace(/^-|-$/g, "");
      throw usageError(
        `'${name}' cannot be a skill's name: it ${fault}.`,
        `Use lower case, and hyphens between words. Such as ${near === "" ? "release-notes" : near}.`,
      );
    }
    const { description } = options;
    if (description !== undefined && (description.trim() === "" || [...description].length > 1024))
      throw usageError("A skill's description must have 1 to 1,024 characters.");
    const path = `.agents/skills/${name}/SKILL.md`;
    const { written } = await writeTemplate(root, [{ path, content: skillText(name, options.description) }]);
    if (written.length === 0)
      throw new KitError({
        code: "conflict",
        message: `${path} exists already.`,
        hint: "Change it, or choose another name.",
      });
    if (context.json) output.json({ name, path });
    else output.line(`Written to ${path}. Try: kit run --skill ${name}`);
  },
});

function skillText(
  name: string,
  description = "Describe in one sentence what the skill does and when to use it.",
): string {
  return `---
name: ${name}
description: ${JSON.stringify(description)}
metadata:
  ${schemaKeys.input}: '{"type": "object", "properties": {}}'
---

Say here what to do, step by step, what to look at first, and what the answer must hold.
`;
}
