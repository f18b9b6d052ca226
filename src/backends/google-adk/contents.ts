import { isRecord } from "../../base/record.ts";
import type { Message, ToolResultPart } from "../../protocol/message.ts";
import { textOf } from "../../protocol/read-records.ts";
import type { BackendTurn } from "../contract.ts";
import { partsText } from "../history.ts";
import type { AdkContent, AdkPart, AdkSchema } from "./google-adk-sdk.ts";

/** Kit's message as the package has it: its callbacks read them; kit sends the model what its own history has. */
export function toContent(message: Message): AdkContent {
  switch (message.role) {
    case "user":
      return { role: "user", parts: [{ text: partsText(message.content) }] };
    case "tool":
      return {
        role: "user",
        parts: message.content.map((result) => ({
          functionResponse: {
            id: result.tool_call_id,
            name: result.tool,
            response: toResponse(result),
          },
        })),
      };
    case "assistant":
      return toModelContent({
        text: textOf(message),
        calls: message.content.flatMap((part) =>
          part.type === "tool_call"
            ? [{ id: part.tool_call_id, tool: part.tool, args: isRecord(part.args) ? part.args : {} }]
            : [],
        ),
      });
  }
}

export function toModelContent({ text, calls }: Pick<BackendTurn, "text" | "calls">): AdkContent {
  const asked = calls.map(({ id, tool, args }): AdkPart => ({ functionCall: { id, name: tool, args } }));
  return { role: "model", parts: text === "" && asked.length > 0 ? asked : [{ text }, ...asked] };
}

export function toResponse({ content, is_error }: ToolResultPart): Readonly<Record<string, string>> {
  return { [is_error ? "error" : "output"]: partsText(content) };
}

const counts = new Set(["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"]);
const shared = [
  ...counts,
  ...["title", "description", "default", "enum", "required", "format", "pattern", "minimum", "maximum"],
  "additionalProperties",
];

/** The package's schema as JSON Schema. */
export function toJsonSchema(schema: AdkSchema): Readonly<Record<string, unknown>> {
  const json: Record<string, unknown> = {};
  for (const key of shared) {
    const value = schema[key];
    if (value !== undefined) json[key] = counts.has(key) ? Number(value) : value;
  }
  const { type, nullable, items, anyOf, properties } = schema;
  if (typeof type === "string" && type !== "TYPE_UNSPECIFIED")
    json.type = nullable === true ? [type.toLowerCase(), "null"] : type.toLowerCase();
  if (isRecord(items)) json.items = toJsonSchema(items);
  if (Array.isArray(anyOf)) json.anyOf = anyOf.filter(isRecord).map(toJsonSchema);
  if (isRecord(properties))
    json.properties = Object.fromEntries(
      Object.entries(properties).map(([name, each]) => [name, isRecord(each) ? toJsonSchema(each) : each]),
    );
  return json;
}
