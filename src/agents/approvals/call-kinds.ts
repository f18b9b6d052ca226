import { toSentence } from "../../base/error-text.ts";
import { KitError } from "../../base/kit-error.ts";
import type { ApprovalDecision } from "../../protocol/approval.ts";
import type { callKinds } from "../../protocol/enums.ts";
import type { CallerTool } from "../../protocol/prompt.ts";
import { builtInToolNames } from "../define/profile-settings.ts";
import { faultOfToolInput, type ToolDefinition } from "../define/tool.ts";
import { cutText } from "../turn/cut-parts.ts";
import { failed, type Outcome } from "../turn/running-call.ts";

/** The kind of a waiting call: it says who decides. */
export type CallKind = (typeof callKinds)[number];

const callerTools = new WeakSet<object>();

/** Converts the tools that a caller declares for one prompt. kit never runs them: the decision about a call is its result. */
export function toCallerTools(declared: readonly CallerTool[]): readonly ToolDefinition[] {
  return declared.map(({ name, description = "", input_schema = noArguments }) => {
    const tool: ToolDefinition = {
      name,
      description,
      input: input_schema,
      // A call that waited when its process ended has not run here.
      idempotent: true,
      execute() {
        throw new Error("The caller runs its own tools.");
      },
    };
    callerTools.add(tool);
    return tool;
  });
}

const noArguments = { type: "object", properties: {}, additionalProperties: false };

/** Characters of JSON of one schema, and of all tools of a request: the check of a schema holds up every other request. */
const maxSchema = 65_536;
const maxTools = 262_144;

/** Throws `invalid_request` for a tool of a caller that no agent could offer. */
export function checkCallerTools(declared: readonly CallerTool[]): void {
  if (JSON.stringify(declared).length > maxTools)
    throw refused("The tools of the request have more than 262,144 characters of JSON.", "tools");
  const names = new Set<string>();
  for (const [at, { name, description = "", input_schema = noArguments }] of declared.entries()) {
    // Other protocols bring tools that the schema of a prompt has not seen.
    if (!/^[a-zA-Z][\w-]{0,63}$/.test(name))
      throw refused(
        "A tool's name must be a letter, then up to 63 letters, digits, _ and -.",
        `tools.${at}.name`,
      );
    if (description.length > 10_000)
      throw refused("A tool's description is over 10,000 characters.", `tools.${at}.description`);
    const isLong = JSON.stringify(input_schema).length > maxSchema;
    const fault = isLong ? "has more than 65,536 characters of JSON" : faultOfToolInput(input_schema);
    if (fault !== undefined)
      throw refused(toSentence(`The tool "${name}": \`input_schema\` ${fault}`), `tools.${at}.input_schema`);
    if (names.has(name)) throw refused(`Two tools of the request are named "${name}".`, `tools.${at}.name`);
    if (builtInToolNames.has(name)) throw nameClash(name);
    if (name.startsWith("mcp_"))
      throw refused(`"${name}" is a name for a tool of an MCP server.`, `tools.${at}.name`, otherName);
    names.add(name);
  }
}

/** The error for a tool of a caller that has the name of a tool of the agent. */
export function nameClash(name: string): KitError {
  const message = `The agent has a tool named "${name}" of its own.`;
  return refused(message, "tools", otherName);
}

const otherName = "Give the tool of the request another name.";

function refused(message: string, path: string, hint?: string): KitError {
  const issues = [{ path, message: "cannot be offered by this agent" }];
  return new KitError({ code: "invalid_request", message, ...(hint && { hint }), meta: { issues } });
}

/** Returns the kind of the calls of a tool; undefined for a tool whose calls run here. */
export function kindOf(tool: ToolDefinition | undefined): Exclude<CallKind, "approval"> | undefined {
  return tool !== undefined && callerTools.has(tool) ? "caller" : undefined;
}

/** The field of the events of a call that its caller runs. */
export function callerKind(tool: ToolDefinition | undefined): { readonly kind?: "caller" } {
  return kindOf(tool) === "caller" ? { kind: "caller" } : {};
}

/** The outcome of a call that its caller has run. */
export function toAnswer({ result }: Pick<ApprovalDecision, "result">): Outcome {
  return { content: textOf(result) };
}

/** Characters of a caller's result; with the line that tells of the cut, the model reads as many. */
const maxResult = 49_900;

/** A caller's result as the log keeps it: what the model does not read is cut. */
export function toKept(result: unknown): unknown {
  const text = textOf(result);
  return text.length > maxResult ? cutText(text, maxResult) : result;
}

function textOf(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result ?? null);
}

/** The outcome of a call that was not run: a person denied it, or its caller has an error. */
export function toDenial({ reason = "", by }: ApprovalDecision, kind: CallKind | undefined): Outcome {
  const why = reason.trim();
  if (kind === "caller") return failed(why === "" ? "The caller gave no result." : why);
  const approver = by === undefined ? "" : ` by ${by}`;
  return failed(
    `The call was denied${approver}, and was not run. Do not repeat it unless you are told to.${why === "" ? "" : `\nReason: ${why}`}`,
  );
}
