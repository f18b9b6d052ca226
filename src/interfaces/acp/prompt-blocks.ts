import type { AvailableCommand, ContentBlock } from "@agentclientprotocol/sdk";
import { KitError } from "../../base/kit-error.ts";
import { isRecord } from "../../base/record.ts";
import type { PromptFile, PromptImage } from "../../protocol/prompt.ts";

export interface EditorInput {
  readonly text: string;
  readonly images?: PromptImage[];
  readonly files?: PromptFile[];
}

/**
 * Converts the content blocks of a prompt. Files that the person mentioned become paths relative to `root`. Throws
 * `invalid_request` for a block that kit does not take.
 */
export function toEditorInput(blocks: readonly ContentBlock[], root: string): EditorInput {
  const images: PromptImage[] = [];
  const files: PromptFile[] = [];
  const texts = blocks.map((block): string => {
    switch (block.type) {
      case "text":
        return block.text;
      case "image":
        images.push({ data: block.data, media_type: block.mimeType });
        return "";
      case "resource_link":
        return `[${block.name}](${pathOf(block.uri, root)})`;
      case "resource": {
        const { resource } = block;
        if ("text" in resource)
          return `\n<file path=${JSON.stringify(pathOf(resource.uri, root))}>\n${resource.text}\n</file>\n`;
        files.push({ data: resource.blob, media_type: resource.mimeType ?? "application/octet-stream" });
        return "";
      }
      default:
        throw new KitError({
          code: "invalid_request",
          message: `kit takes texts, images, links and embedded files, and no ${block.type}.`,
        });
    }
  });
  const text = texts.join("");
  return {
    text: text.trim() === "" && images.length + files.length > 0 ? "See what is attached." : text,
    ...(images.length > 0 && { images }),
    ...(files.length > 0 && { files }),
  };
}

function pathOf(uri: string, root: string): string {
  if (!uri.startsWith("file://")) return uri;
  try {
    const path = decodeURIComponent(new URL(uri).pathname);
    return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
  } catch {
    return uri;
  }
}

/** A skill as far as its slash command needs it. */
export interface CommandSkill {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: unknown;
}

/** The command that works through the tasks of a spec. */
const specCommand: AvailableCommand = {
  name: "spec",
  description: "Work through the open tasks of a spec, as 'kit run --spec' does",
  input: { hint: "the feature, such as checkout, and the tasks, such as 3 1.2; default: all that are open" },
};

/** Returns what follows `/spec`; undefined for another prompt, and where a skill has this name. */
export function findSpecCommand(text: string, skills: readonly CommandSkill[]): string | undefined {
  const found = /^\/spec(?:\s+(.*))?$/s.exec(text.trimEnd());
  return found === null || hasOwnSpec(skills) ? undefined : (found[1] ?? "");
}

/** Converts skills to the slash commands of an editor, which are single words, and adds kit's own. */
export function toCommands(skills: readonly CommandSkill[]): AvailableCommand[] {
  const commands = skills
    .filter(({ name }) => !/\s/.test(name))
    .map((skill) => {
      const hint = propertiesOf(skill).join(", ") || "what it is about";
      return { name: skill.name, description: skill.description || skill.name, input: { hint } };
    });
  return hasOwnSpec(skills) ? commands : [...commands, specCommand];
}

function hasOwnSpec(skills: readonly CommandSkill[]): boolean {
  return skills.some(({ name }) => name === specCommand.name);
}

/**
 * Returns the skill that a prompt calls, with its arguments; undefined for a prompt that is none of the commands. What follows the
 * name is a JSON object, or the value of the skill's only property, or `input`.
 */
export function findCommand<Skill extends CommandSkill>(
  text: string,
  skills: readonly Skill[],
): { readonly skill: Skill; readonly args?: Readonly<Record<string, unknown>> } | undefined {
  const [, name, rest = ""] = /^\/(\S+)\s*(.*)$/s.exec(text.trimEnd()) ?? [];
  const skill = skills.find((each) => each.name === name);
  if (skill === undefined || rest === "") return skill && { skill };
  const [only = "input", another] = propertiesOf(skill);
  try {
    const args: unknown = JSON.parse(rest);
    if (isRecord(args)) return { skill, args };
  } catch {
    // The words are no JSON.
  }
  return { skill, args: { [another === undefined ? only : "input"]: rest } };
}

function propertiesOf({ inputSchema }: CommandSkill): readonly string[] {
  const properties = isRecord(inputSchema) ? inputSchema.properties : undefined;
  return isRecord(properties) ? Object.keys(properties) : [];
}
