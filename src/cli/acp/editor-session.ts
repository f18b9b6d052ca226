import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type {
  AgentContext,
  ContentBlock,
  McpServer,
  RequestPermissionRequest,
  SessionUpdate,
  StopReason,
} from "@agentclientprotocol/sdk";
import { methods } from "@agentclientprotocol/sdk";
import type { Skill } from "../../agents/define/agent-profile.ts";
import type { Agent } from "../../agents/harness.ts";
import type { PromptResult } from "../../agents/operations/options.ts";
import { maskError } from "../../agents/secrets.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import { describeCall, diffOf } from "../../interfaces/acp/call-view.ts";
import { AcpFold } from "../../interfaces/acp/fold.ts";
import { toOptions, toVerdict } from "../../interfaces/acp/permission.ts";
import { findCommand, toCommands, toEditorInput } from "../../interfaces/acp/prompt-blocks.ts";
import { type ReplayedMessage, toReplay } from "../../interfaces/acp/replay.ts";
import type { SessionSettings } from "../../interfaces/acp/session-settings.ts";
import type { McpClient } from "../../mcp/create-mcp-client.ts";
import type { AllowChoices, ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import { findChangedFile } from "../../protocol/call-change.ts";
import type { KitEvent } from "../../protocol/event.ts";
import { openClientServers } from "./client-servers.ts";
import type { EditorProject } from "./editor-project.ts";

/** Messages that are read at a time for a replay. */
const pageSize = 200;
/** Larger files get no diff, in bytes. */
const maxFile = 1_048_576;

/** A session that an editor has open: an instance of the agent, with one conversation. */
export class EditorSession {
  readonly id: string;
  readonly project: EditorProject;
  settings: SessionSettings = {};
  readonly #agent: Agent;
  readonly #client: AgentContext;
  readonly #servers: McpClient | undefined;
  readonly #fold: AcpFold;
  readonly #running = new Set<AbortController>();
  readonly #stopListening: () => void;

  private constructor(
    agent: Agent,
    project: EditorProject,
    around: Omit<SessionRequest, "id" | "agent" | "mcpServers"> & { servers: McpClient | undefined },
  ) {
    this.id = agent.id;
    this.project = project;
    this.#agent = agent;
    this.#client = around.client;
    this.#servers = around.servers;
    this.#fold = new AcpFold({ root: project.root, windowOf: project.windowOf });
    this.#stopListening = agent.onEvent((event) => this.#onEvent(event));
  }

  /** Opens a session that exists or is new. */
  static async open(project: EditorProject, request: SessionRequest): Promise<EditorSession> {
    const { id, agent: name, client, mcpServers } = request;
    const servers = openClientServers(mcpServers, project.service.app.root);
    const agent = await project.service.app.instance(name, id);
    return new EditorSession(agent, project, { client, servers });
  }

  /** Whether its conversation has begun. */
  async exists(): Promise<boolean> {
    return (await this.#agent.sessions.get("default")) !== undefined;
  }

  announce(): void {
    const availableCommands = toCommands(this.#skills);
    this.send([{ sessionUpdate: "available_commands_update", availableCommands }]);
  }

  /** Sends updates, in order. The end of the connection is noticed elsewhere. */
  send(updates: readonly SessionUpdate[]): void {
    for (const update of updates)
      this.#client
        .notify(methods.client.session.update, { sessionId: this.id, update })
        .catch(() => undefined);
  }

  /** Sends the conversation so far, from the log of the session. */
  async replay(): Promise<void> {
    const target = { agent: this.#agent.name, instance_id: this.id, session: "default" };
    let messages: readonly ReplayedMessage[] = [];
    let before: number | undefined;
    do {
      const page = await this.project.service.historyPage(target, { limit: pageSize, before });
      messages = [...page.entries, ...messages];
      before = page.next_before;
    } while (before !== undefined);
    this.send(toReplay(messages, this.project.root));
  }

  /** Prompts the agent, or runs the skill whose command the prompt begins with. */
  async prompt(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<StopReason> {
    const stopping = new AbortController();
    this.#running.add(stopping);
    const ending = AbortSignal.any([stopping.signal, signal]);
    try {
      const { metadata } = await this.#answer(blocks, ending);
      return stops[metadata.finish_reason] ?? "end_turn";
    } catch (error) {
      if (ending.aborted || hasCode(error, "aborted")) return "cancelled";
      if (hasCode(error, "budget_exceeded")) return "max_turn_requests";
      throw maskError(error, this.project.service.app.mask);
    } finally {
      this.#running.delete(stopping);
      if (this.#running.size === 0) this.send(this.#fold.endOpen());
    }
  }

  /** Stops the running prompts. */
  cancel(): void {
    for (const stopping of this.#running) stopping.abort();
  }

  /** Asks the person in the editor about a waiting call. An answer that is no clear yes is a no. */
  async ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    const rules = await this.project.service.allowRules();
    const choices: AllowChoices = rules.describe(request.allow_rules ?? []);
    const { root } = this.project;
    const change = diffOf(request, root, this.#before(request));
    const toolCall = {
      toolCallId: this.#fold.idOf(request) ?? request.tool_call_id,
      status: "pending" as const,
      ...describeCall(request, root),
      ...(change === undefined ? {} : { content: [change] }),
    };
    const { requestPermission } = methods.client.session;
    const permission: RequestPermissionRequest = {
      sessionId: this.id,
      toolCall,
      options: toOptions(choices),
    };
    const outcome = await this.#client
      .request(requestPermission, permission, { cancellationSignal: signal })
      .then((reply) => reply.outcome)
      .catch(() => undefined);
    const { approved, rule } = toVerdict(outcome, choices);
    if (rule !== undefined && !signal.aborted)
      await rules
        .write(rule)
        .catch((error: unknown) => this.#remark(`${thrownText(error)} This call is allowed once.`));
    return approved
      ? { approved, by: "editor" }
      : { approved, by: "editor", reason: "Denied in the editor." };
  }

  /** Removes the conversation. */
  async delete(): Promise<void> {
    await this.close();
    await this.#agent.sessions.delete("default");
  }

  async close(): Promise<void> {
    this.cancel();
    this.#stopListening();
    await this.#servers?.close();
  }

  get #skills(): readonly Skill[] {
    return this.#agent.profile.skills ?? [];
  }

  async #answer(blocks: readonly ContentBlock[], signal: AbortSignal): Promise<PromptResult<unknown>> {
    const { text, ...attached } = toEditorInput(blocks, this.project.root);
    const tools = await this.#servers?.tools({
      signal,
      onProblem: ({ server, message }) => this.#remark(`MCP server "${server}": ${message}`),
    });
    const options = defined({ ...attached, ...this.settings, tools, signal });
    const session = this.#agent.session();
    const command = findCommand(text, this.#skills);
    if (command === undefined) return await session.prompt(text, options);
    return await session.skill(command.skill.name, { ...options, ...defined({ args: command.args }) });
  }

  /** A remark of kit, which is no part of the conversation. */
  #remark(text: string): void {
    const content = { type: "text" as const, text: `${this.project.service.app.mask(text)}\n` };
    this.send([{ sessionUpdate: "agent_thought_chunk", content }]);
  }

  #onEvent(event: KitEvent): void {
    // The event comes before the call runs, so the file has its old text: it must be read before this function returns.
    const before = event.type === "tool_start" ? this.#before(event) : undefined;
    this.send(this.#fold.push(event, before));
  }

  /** The text of the file that a call changes; null where there is none, undefined where kit must not show it. */
  #before({ tool, args }: { readonly tool: string; readonly args?: unknown }): string | null | undefined {
    const path = findChangedFile(tool, args);
    if (path === undefined) return undefined;
    const { app } = this.project.service;
    const file = resolve(app.root, path);
    try {
      if (!`${realpathSync(dirname(file))}${sep}`.startsWith(`${realpathSync(app.root)}${sep}`))
        return undefined;
      const stat = lstatSync(file, { throwIfNoEntry: false });
      if (stat === undefined) return null;
      return stat.isFile() && stat.size <= maxFile ? app.mask(readFileSync(file, "utf8")) : undefined;
    } catch (error) {
      return error instanceof Error && "code" in error && error.code === "ENOENT" ? null : undefined;
    }
  }
}

export interface SessionRequest {
  readonly id: string;
  readonly agent: string;
  readonly client: AgentContext;
  readonly mcpServers: readonly McpServer[];
}

const stops: Readonly<Record<string, StopReason>> = {
  length: "max_tokens",
  "content-filter": "refusal",
};

function hasCode(error: unknown, code: string): boolean {
  return error instanceof KitError && error.code === code;
}
