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
          message: `A prompt's block is ${block.type === "audio" ? "audio" : "of an unknown type"}.`,
          hint: "kit takes texts, images, links and embedded files.",
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
  const { pathname } = new URL(uri);
  let path: string;
  try {
    path = decodeURIComponent(pathname);
  } catch {
    return uri;
  }
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}

/** A skill as far as its slash command needs it. */
export interface CommandSkill {
  readonly name: string;
  readonly description: string;
  readonly inputSchema?: unknown;
}

/** Skills as the slash commands of an editor. */
export function toCommands(skills: readonly CommandSkill[]): AvailableCommand[] {
  return skills.map((skill) => {
    const names = propertiesOf(skill);
    const hint = names.length === 0 ? "what it is about" : names.join(", ");
    return { name: skill.name, description: skill.description || skill.name, input: { hint } };
  });
}

/**
 * Returns the skill that a prompt calls, with its arguments; undefined for a prompt that is none of the commands. The rest of the line
 * is a JSON object, or the value of the skill's only property, or `input`.
 */
export function findCommand<Skill extends CommandSkill>(
  text: string,
  skills: readonly Skill[],
): { readonly skill: Skill; readonly args?: Readonly<Record<string, unknown>> } | undefined {
  if (!text.startsWith("/")) return undefined;
  // A skill's name can have spaces, and another one's name can begin with it.
  const fitting = skills.filter(
    ({ name }) => text.startsWith(name, 1) && /^(?:\s|$)/.test(text.slice(name.length + 1)),
  );
  const skill = fitting.toSorted((one, other) => other.name.length - one.name.length)[0];
  if (skill === undefined) return undefined;
  const rest = text.slice(skill.name.length + 1).trim();
  if (rest === "") return { skill };
  const written = rest.startsWith("{") ? parsed(rest) : undefined;
  if (written !== undefined) return { skill, args: written };
  const [only, another] = propertiesOf(skill);
  return { skill, args: { [only !== undefined && another === undefined ? only : "input"]: rest } };
}

function propertiesOf({ inputSchema }: CommandSkill): readonly string[] {
  const properties = isRecord(inputSchema) ? inputSchema.properties : undefined;
  return isRecord(properties) ? Object.keys(properties) : [];
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
