import { lstatSync, readFileSync, realpathSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type * as Acp from "@agentclientprotocol/sdk";
import { methods } from "@agentclientprotocol/sdk";
import type { Skill } from "../../agents/define/agent-profile.ts";
import type { Agent } from "../../agents/harness.ts";
import { maskError } from "../../agents/secrets.ts";
import { KitError } from "../../base/kit-error.ts";
import { defined } from "../../base/record.ts";
import { thrownText } from "../../base/thrown.ts";
import { commandContent, describeCall, diffOf } from "../../interfaces/acp/call-view.ts";
import { AcpFold, type ReplayedMessage } from "../../interfaces/acp/fold.ts";
import { toOptions, toVerdict } from "../../interfaces/acp/permission.ts";
import {
  findCommand,
  findSpecCommand,
  toCommands,
  toEditorInput,
} from "../../interfaces/acp/prompt-blocks.ts";
import { type SessionSettings, toConfigOptions } from "../../interfaces/acp/session-settings.ts";
import type { McpClient } from "../../mcp/create-mcp-client.ts";
import type { ApprovalDecision, ApprovalRequest } from "../../protocol/approval.ts";
import { findChangedFile } from "../../protocol/call-change.ts";
import { openClientServers } from "./client-servers.ts";
import type { EditorProject } from "./editor-project.ts";
import type { PromptSignals, RunEditor } from "./editor-spec-run.ts";

/** Messages that are read at a time for a replay. */
const pageSize = 200;
/** Larger files get no diff, in bytes. */
const maxFile = 1_048_576;

const stops: Readonly<Record<string, Acp.StopReason>> = { length: "max_tokens", "content-filter": "refusal" };

/** A session that an editor has open: an instance of the agent, with one conversation. */
export class EditorSession {
  readonly project: EditorProject;
  settings: SessionSettings = {};
  /** As the editor names it. */
  readonly #folder: string;
  readonly #agent: Agent;
  readonly #client: Acp.AgentContext;
  readonly #servers: McpClient | undefined;
  readonly #fold: AcpFold;
  readonly #running = new Set<{ readonly stop: AbortController; readonly leave: AbortController }>();
  readonly #specRuns = new Set<Promise<unknown>>();
  readonly #stopListening: () => void;

  constructor(
    project: EditorProject,
    agent: Agent,
    around: {
      readonly client: Acp.AgentContext;
      readonly cwd: string;
      readonly mcpServers?: readonly Acp.McpServer[] | undefined;
      /** Whether the session may have turns that this object has not seen. */
      readonly isReopened?: boolean;
    },
  ) {
    this.project = project;
    this.#folder = around.cwd.replace(/\/+$/, "");
    this.#agent = agent;
    this.#client = around.client;
    this.#servers = openClientServers(around.mcpServers ?? [], project.service.app.root);
    this.#fold = new AcpFold(this.#folder, project.windowOf, around.isReopened);
    this.#stopListening = agent.onEvent((event) => {
      // The event comes before the call runs, so the file must be read before this function returns.
      this.#send(this.#fold.push(event, event.type === "tool_start" ? this.#before(event) : undefined));
    });
  }

  get configOptions(): Acp.SessionConfigOption[] {
    return toConfigOptions(this.settings, this.project.models);
  }

  announce(): void {
    const availableCommands = toCommands(this.#skills);
    this.#send([{ sessionUpdate: "available_commands_update", availableCommands }]);
  }

  /** Sends the conversation so far, from the log of the session. */
  async replay(): Promise<void> {
    const target = { agent: this.#agent.name, instance_id: this.#agent.id, session: "default" };
    let messages: readonly ReplayedMessage[] = [];
    let before: number | undefined;
    do {
      const page = await this.project.service.historyPage(target, { limit: pageSize, before });
      messages = [...page.entries, ...messages];
      before = page.next_before;
    } while (before !== undefined);
    this.#send(this.#fold.replay(messages));
  }

  /** Prompts the agent, or runs the skill whose command the prompt begins with. */
  async prompt(blocks: readonly Acp.ContentBlock[], signal: AbortSignal): Promise<Acp.StopReason> {
    const running = { stop: new AbortController(), leave: new AbortController() };
    this.#running.add(running);
    // The end of the connection fires it.
    const leave = AbortSignal.any([running.leave.signal, signal]);
    const ending = AbortSignal.any([running.stop.signal, leave]);
    try {
      return await this.#answer(blocks, { stop: running.stop.signal, leave }, ending);
    } catch (error) {
      const code = error instanceof KitError ? error.code : undefined;
      if (ending.aborted || code === "aborted") return "cancelled";
      if (code === "budget_exceeded") return "max_turn_requests";
      throw maskError(error, this.project.service.app.mask);
    } finally {
      this.#running.delete(running);
      if (this.#running.size === 0) this.#send(this.#fold.endOpen());
    }
  }

  /** Stops the running prompts. */
  cancel(): void {
    for (const { stop } of this.#running) stop.abort();
  }

  /** Asks the person in the editor about a waiting call. An answer that is no clear yes is a no. */
  async ask(request: ApprovalRequest, signal: AbortSignal): Promise<ApprovalDecision> {
    const folder = this.#folder;
    const rules = await this.project.service.allowRules();
    const choices = rules.describe(request.allow_rules ?? []);
    const content = commandContent(request) ?? diffOf(request, folder, this.#before(request));
    const toolCall: Acp.ToolCallUpdate = {
      toolCallId: this.#fold.idOf(request) ?? request.tool_call_id,
      status: "pending",
      ...describeCall(request, folder),
      ...(content && { content: [content] }),
    };
    const outcome = await this.#request({ toolCall, options: toOptions(choices) }, signal);
    const { approved, rule } = toVerdict(outcome, choices);
    if (rule !== undefined && !signal.aborted)
      await rules
        .write(rule)
        .catch((error: unknown) => this.#remark(`${thrownText(error)} It is allowed once.`));
    return { approved, by: "editor", ...(approved ? {} : { reason: "Denied in the editor." }) };
  }

  /** Ends the prompts. A spec run is left as it is, for the next command. */
  async close(): Promise<void> {
    for (const { leave } of this.#running) leave.abort();
    this.#stopListening();
    await Promise.allSettled(this.#specRuns);
    await this.#servers?.close();
  }

  get #skills(): readonly Skill[] {
    return this.#agent.profile.skills ?? [];
  }

  async #answer(
    blocks: readonly Acp.ContentBlock[],
    signals: PromptSignals,
    signal: AbortSignal,
  ): Promise<Acp.StopReason> {
    const { text, ...attached } = toEditorInput(blocks, this.#folder);
    const spec = findSpecCommand(text, this.#skills);
    if (spec !== undefined) {
      const run = this.#runSpec(spec, signals);
      this.#specRuns.add(run);
      return await run.finally(() => this.#specRuns.delete(run));
    }
    const tools = await this.#servers?.tools({
      signal,
      onProblem: ({ server, message }) => this.#remark(`MCP server "${server}": ${message}`),
    });
    const command = findCommand(text, this.#skills);
    const options = defined({ ...attached, ...this.settings, tools, signal });
    const session = this.#agent.session();
    const { metadata } =
      command === undefined
        ? await session.prompt<unknown>(text, options)
        : await session.skill(command.skill.name, { ...options, ...defined({ args: command.args }) });
    return stops[metadata.finish_reason] ?? "end_turn";
  }

  /** Works through the tasks of a spec, whose agents have sessions of their own. */
  async #runSpec(words: string, signals: PromptSignals): Promise<Acp.StopReason> {
    const { EditorSpecRun, toSpecRunBody } = await import("./editor-spec-run.ts");
    const { name } = this.#agent;
    const body = { ...toSpecRunBody(words), ...(name === "default" ? {} : { agent: name }) };
    const runs = await this.project.openRuns(this.settings.model);
    try {
      if (runs.isServed)
        this.#remark("The server of this project does the work, with the model that it has.");
      const editor: RunEditor = {
        send: (updates) => this.#send(updates),
        ask: (toolCall, options, ended) => this.#request({ toolCall, options }, ended),
        prefix: await this.#prefix(),
      };
      await new EditorSpecRun(runs.client, editor).toEnd(body, signals);
      return "end_turn";
    } finally {
      await runs.close();
    }
  }

  /** The path of the project in its repository. */
  async #prefix(): Promise<string> {
    const { runGit } = await import("../../processes/git.ts");
    const found = await runGit(["rev-parse", "--show-prefix"], { cwd: this.project.service.app.root });
    return found.status === "ok" ? found.stdout.toString().trim() : "";
  }

  /** Asks the person in the editor; undefined if it gives no answer. */
  async #request(
    asked: Omit<Acp.RequestPermissionRequest, "sessionId">,
    cancellationSignal: AbortSignal,
  ): Promise<Acp.RequestPermissionOutcome | undefined> {
    const permission = { sessionId: this.#agent.id, ...asked };
    return await this.#client
      .request(methods.client.session.requestPermission, permission, { cancellationSignal })
      .then((reply) => reply.outcome)
      .catch(() => undefined);
  }

  /** Sends updates, in order. The end of the connection is noticed elsewhere. */
  #send(updates: readonly Acp.SessionUpdate[]): void {
    const { id: sessionId } = this.#agent;
    for (const update of updates)
      this.#client.notify(methods.client.session.update, { sessionId, update }).catch(() => undefined);
  }

  /** Sends a remark of kit, which is no part of the conversation. */
  #remark(words: string): void {
    const text = `${this.project.service.app.mask(words)}\n`;
    this.#send([{ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } }]);
  }

  /** Returns the text of the file that a call changes: null for a new file, undefined where kit must not show it. */
  #before({ tool, args }: { readonly tool: string; readonly args?: unknown }): string | null | undefined {
    const path = findChangedFile(tool, args);
    if (path === undefined) return undefined;
    const { root, mask } = this.project.service.app;
    const file = resolve(root, path);
    try {
      if (!`${realpathSync(dirname(file))}${sep}`.startsWith(`${root}${sep}`)) return undefined;
      const stat = lstatSync(file);
      return stat.isFile() && stat.size <= maxFile ? mask(readFileSync(file, "utf8")) : undefined;
    } catch (error) {
      return error instanceof Error && "code" in error && error.code === "ENOENT" ? null : undefined;
    }
  }
}
