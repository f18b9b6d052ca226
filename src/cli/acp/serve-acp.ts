import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";
import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import { onAbort } from "../../base/abort.ts";
import { createUlid } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { version } from "../../base/own-package.ts";
import { thrownText } from "../../base/thrown.ts";
import { withChoice } from "../../interfaces/acp/session-settings.ts";
import {
  type EditorAgentOptions,
  type EditorProject,
  openEditorProject,
  realFolder,
} from "./editor-project.ts";
import { EditorSession } from "./editor-session.ts";
import { takeStdout } from "./take-stdout.ts";

/** Sessions of editors begin with it; `kit run` and servers have other instances of the same agent. */
const prefix = "acp-";
/** Sessions in a page of a list. */
const pageSize = 50;

/**
 * Speaks the Agent Client Protocol on stdin and stdout until the editor leaves or the command is stopped. Nothing but the protocol
 * is written to stdout.
 */
export async function serveAcp(options: EditorAgentOptions): Promise<void> {
  const { output, signal } = options.context;
  using stdout = takeStdout();
  const sessions = new EditorSessions(options);
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
  const written = Writable.toWeb(stdout.writable) as WritableStream<Uint8Array>;
  const connection = sessions.app().connect(acp.ndJsonStream(written, input));
  onAbort(signal, () => connection.close());
  await connection.closed;
  const { reason } = connection.signal;
  if (reason instanceof acp.MessageTooLargeError) output.note(`kit acp: ${reason.message}, so it ends.`);
  await sessions.close();
}

interface OpenRequest {
  readonly sessionId: string;
  readonly cwd: string;
  readonly client: acp.AgentContext;
  readonly mcpServers?: readonly acp.McpServer[] | undefined;
  readonly isReopened?: boolean;
}

/** The projects and sessions that one editor has open. */
class EditorSessions {
  readonly #options: EditorAgentOptions;
  readonly #approvals: Approvals;
  /** By real path. */
  readonly #projects = new Map<string, Promise<EditorProject>>();
  readonly #sessions = new Map<string, EditorSession>();
  /** The last opening of each session: two at once would leave a session behind that goes on sending. */
  readonly #openings = new Map<string, Promise<unknown>>();

  constructor(options: EditorAgentOptions) {
    this.#options = options;
    this.#approvals = this.#askEditor();
  }

  app() {
    const { initialize, session } = acp.methods.agent;
    return acp
      .agent({ name: "kit" })
      .onRequest(initialize, ({ params }) => ({
        protocolVersion: Math.min(params.protocolVersion, acp.PROTOCOL_VERSION),
        agentInfo: { name: "kit", title: "kit", version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true },
          mcpCapabilities: { http: true, sse: false },
          sessionCapabilities: { list: {}, resume: {}, close: {} },
        },
        authMethods: [],
      }))
      .onRequest(session.new, ({ params, client }) =>
        answer(async () => {
          const sessionId = `${prefix}${createUlid().toLowerCase()}`;
          return { sessionId, ...this.#begin(await this.#open({ ...params, sessionId, client })) };
        }),
      )
      .onRequest(session.load, ({ params, client }) =>
        answer(() =>
          this.#reopen({ ...params, client }, async (opened) => {
            // The editor expects the conversation before the reply.
            await opened.replay();
            return this.#begin(opened);
          }),
        ),
      )
      .onRequest(session.resume, ({ params, client }) =>
        answer(() => this.#reopen({ ...params, client }, async (opened) => this.#begin(opened))),
      )
      .onRequest(session.list, ({ params }) => answer(() => this.#list(params)))
      .onRequest(session.setConfigOption, ({ params }) =>
        answer(async () => {
          const opened = this.#sessionOf(params);
          opened.settings = withChoice(opened.settings, params, opened.project.models);
          return { configOptions: opened.configOptions };
        }),
      )
      .onRequest(session.prompt, ({ params, signal }) =>
        answer(async () => ({ stopReason: await this.#sessionOf(params).prompt(params.prompt, signal) })),
      )
      .onNotification(session.cancel, ({ params }) => this.#sessions.get(params.sessionId)?.cancel())
      .onRequest(session.close, ({ params }) => answer(() => this.#end(params)));
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#sessions.values()].map((session) => session.close()));
    for (const opening of this.#projects.values())
      await opening.then(
        ({ service }) => service.close({ timeoutMs: 0 }),
        () => undefined,
      );
  }

  /** Returns the reply about an open session. Its commands come later, because the editor does not know the id before. */
  #begin(session: EditorSession) {
    setImmediate(() => session.announce());
    return { configOptions: session.configOptions };
  }

  #sessionOf({ sessionId }: { readonly sessionId: string }): EditorSession {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) throw acp.RequestError.sessionNotFound(sessionId);
    return session;
  }

  async #end(params: { readonly sessionId: string }): Promise<Record<string, never>> {
    const session = this.#sessionOf(params);
    this.#sessions.delete(params.sessionId);
    await session.close();
    return {};
  }

  async #open({ sessionId, ...around }: OpenRequest): Promise<EditorSession> {
    const project = await this.#projectOf(around.cwd);
    const agent = await project.service.app.instance(this.#options.agent, sessionId);
    await this.#sessions.get(sessionId)?.close();
    const session = new EditorSession(project, agent, around);
    this.#sessions.set(sessionId, session);
    return session;
  }

  async #reopen<Reply>(
    request: OpenRequest,
    use: (session: EditorSession) => Promise<Reply>,
  ): Promise<Reply> {
    const { sessionId: instance_id, cwd } = request;
    const { service } = await this.#projectOf(cwd);
    const { agent } = this.#options;
    const page = await service.sessions.list({ agent, instance_id, limit: 1 });
    if (!instance_id.startsWith(prefix) || page.sessions.length === 0)
      throw acp.RequestError.sessionNotFound(instance_id);
    const before = this.#openings.get(instance_id);
    const opening = Promise.allSettled([before]).then(
      async () => await use(await this.#open({ ...request, isReopened: true })),
    );
    this.#openings.set(instance_id, opening);
    return await opening;
  }

  async #list(params: acp.ListSessionsRequest): Promise<acp.ListSessionsResponse> {
    const { agent, context } = this.#options;
    const cwd = params.cwd ?? context.root;
    const { service } = await this.#projectOf(cwd);
    const cursor = params.cursor ?? undefined;
    const page = await service.sessions.list({
      agent,
      order: "recent",
      parents_only: true,
      limit: pageSize,
      cursor,
    });
    return {
      sessions: page.sessions
        .filter(({ instance_id }) => instance_id.startsWith(prefix))
        .map(({ instance_id: sessionId, title = null, touched_at: updatedAt }) => {
          return { sessionId, cwd, title, updatedAt };
        }),
      nextCursor: page.next_cursor ?? null,
    };
  }

  #projectOf(cwd: string): Promise<EditorProject> {
    const root = realFolder(cwd);
    const opening = this.#projects.get(root) ?? openEditorProject(root, this.#options, this.#approvals);
    this.#projects.set(root, opening);
    // A person can trust the folder, or repair its configuration, and try again.
    opening.catch(() => this.#projects.delete(root));
    return opening;
  }

  /** Creates the waiting calls of all projects: the session that a call belongs to asks about it. */
  #askEditor(): Approvals {
    const waiting = createApprovals();
    return {
      ...waiting,
      request: (request, signal, wait) => {
        const decided = waiting.request(request, signal, wait);
        const isQuestion = request.kind === "question";
        const session = isQuestion ? undefined : this.#sessions.get(request.instance_id);
        const denied = isQuestion
          ? ({ approved: false, reason: "An editor shows no forms.", unanswered: true } as const)
          : { approved: false, reason: "No editor could be asked." };
        Promise.resolve(session?.ask(request, signal) ?? denied)
          .catch(() => denied)
          // A late answer is ignored: the call was aborted or has expired.
          .then((decision) => waiting.decide(request.approval_id, decision))
          .catch(() => undefined);
        return decided;
      },
    };
  }
}

const invalidParams = -32_602;
const internalError = -32_603;

/** Answers a request; errors get the codes of the protocol, and say what to do. */
async function answer<Reply>(work: () => Promise<Reply>): Promise<Reply> {
  return await work().catch((error: unknown) => Promise.reject(toRequestError(error)));
}

function toRequestError(error: unknown): acp.RequestError {
  if (error instanceof acp.RequestError) return error;
  if (!(error instanceof KitError)) return new acp.RequestError(internalError, thrownText(error));
  const { code, message, hint } = error;
  const number = code === "invalid_request" ? invalidParams : internalError;
  return new acp.RequestError(number, hint === undefined ? message : `${message} ${hint}`, { code });
}
