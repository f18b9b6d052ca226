import { Readable } from "node:stream";
import {
  type AgentContext,
  agent,
  type McpServer,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk";
import { type Approvals, createApprovals } from "../../agents/approvals/approvals.ts";
import { onAbort } from "../../base/abort.ts";
import { createUlid } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import { version } from "../../base/own-package.ts";
import { toConfigOptions, withChoice } from "../../interfaces/acp/session-settings.ts";
import { describeError } from "../report-error.ts";
import { type EditorAgentOptions, type EditorProject, openEditorProject } from "./editor-project.ts";
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
  const { context } = options;
  using stdout = takeStdout();
  const served = new EditorSessions(options);
  const connection = served
    .app()
    .connect(ndJsonStream(stdout.writable, Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>));
  onAbort(context.signal, () => connection.close());
  await connection.closed.catch((error: unknown) => context.output.note(`kit acp: ${describeError(error)}`));
  await served.close();
}

/** The projects and sessions that one editor has open. */
class EditorSessions {
  readonly #options: EditorAgentOptions;
  readonly #approvals: Approvals;
  readonly #projects = new Map<string, Promise<EditorProject>>();
  readonly #sessions = new Map<string, EditorSession>();

  constructor(options: EditorAgentOptions) {
    this.#options = options;
    this.#approvals = this.#askEditor();
  }

  app() {
    const { agent: agentMethods } = methods;
    const { session } = agentMethods;
    return agent({ name: "kit" })
      .onRequest(agentMethods.initialize, ({ params }) => ({
        protocolVersion: Math.min(params.protocolVersion, PROTOCOL_VERSION),
        agentInfo: { name: "kit", title: "kit", version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true },
          mcpCapabilities: { http: true, sse: false },
          sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
        },
        authMethods: [],
      }))
      .onRequest(session.new, ({ params, client }) =>
        answer(async () => {
          const opened = await this.#open({
            ...params,
            id: `${prefix}${createUlid().toLowerCase()}`,
            client,
          });
          return { sessionId: opened.id, ...this.#begin(opened) };
        }),
      )
      .onRequest(session.load, ({ params, client }) =>
        answer(async () => {
          const opened = await this.#reopen({ ...params, client });
          // The editor expects the conversation before the reply.
          await opened.replay();
          return this.#begin(opened);
        }),
      )
      .onRequest(session.resume, ({ params, client }) =>
        answer(async () => this.#begin(await this.#reopen({ mcpServers: [], ...params, client }))),
      )
      .onRequest(session.list, ({ params }) => answer(() => this.#list(params)))
      .onRequest(session.setConfigOption, ({ params }) =>
        answer(async () => {
          const opened = this.#sessionOf(params.sessionId);
          opened.settings = withChoice(opened.settings, params, opened.project.models);
          return { configOptions: toConfigOptions(opened.settings, opened.project.models) };
        }),
      )
      .onRequest(session.prompt, ({ params, signal }) =>
        answer(async () => ({
          stopReason: await this.#sessionOf(params.sessionId).prompt(params.prompt, signal),
        })),
      )
      .onNotification(session.cancel, ({ params }) => this.#sessions.get(params.sessionId)?.cancel())
      .onRequest(session.close, ({ params }) =>
        answer(async () => {
          await this.#sessionOf(params.sessionId).close();
          this.#sessions.delete(params.sessionId);
          return {};
        }),
      )
      .onRequest(session.delete, ({ params }) =>
        answer(async () => {
          await this.#sessionOf(params.sessionId).delete();
          this.#sessions.delete(params.sessionId);
          return {};
        }),
      );
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#sessions.values()].map((session) => session.close()));
    for (const opening of this.#projects.values()) {
      const project = await opening.catch(() => undefined);
      await project?.service.close({ timeoutMs: 0 });
    }
  }

  /** The reply about an open session. Its commands are announced after it, because the editor does not know the id before. */
  #begin(session: EditorSession) {
    setImmediate(() => session.announce());
    return { configOptions: toConfigOptions(session.settings, session.project.models) };
  }

  #sessionOf(id: string): EditorSession {
    const session = this.#sessions.get(id);
    if (session === undefined) throw RequestError.sessionNotFound(id);
    return session;
  }

  async #open({ id, cwd, client, mcpServers }: OpenRequest): Promise<EditorSession> {
    const project = await this.#projectOf(cwd);
    const request = { id, agent: this.#options.agent, client, mcpServers: mcpServers ?? [] };
    const session = await EditorSession.open(project, request);
    await this.#sessions.get(id)?.close();
    this.#sessions.set(id, session);
    return session;
  }

  async #reopen({
    sessionId: id,
    ...request
  }: Omit<OpenRequest, "id"> & { sessionId: string }): Promise<EditorSession> {
    if (!/^acp-[0-9a-z]{26}$/.test(id)) throw RequestError.sessionNotFound(id);
    const session = await this.#open({ ...request, id });
    if (await session.exists()) return session;
    await session.close();
    this.#sessions.delete(id);
    throw RequestError.sessionNotFound(id);
  }

  async #list({ cwd, cursor }: { readonly cwd?: string | null; readonly cursor?: string | null }) {
    const folder = cwd ?? this.#options.context.root;
    const { service } = await this.#projectOf(folder);
    const page = await service.sessions.list({
      agent: this.#options.agent,
      order: "recent",
      parents_only: true,
      limit: pageSize,
      cursor: cursor ?? undefined,
    });
    const sessions = page.sessions.filter(({ instance_id }) => instance_id.startsWith(prefix));
    return {
      sessions: sessions.map(({ instance_id, title, touched_at }) => {
        return {
          sessionId: instance_id,
          cwd: folder,
          updatedAt: touched_at,
          ...(title === undefined ? {} : { title }),
        };
      }),
      ...(page.next_cursor === undefined ? {} : { nextCursor: page.next_cursor }),
    };
  }

  #projectOf(cwd: string): Promise<EditorProject> {
    let opening = this.#projects.get(cwd);
    if (opening === undefined) {
      opening = openEditorProject(cwd, this.#options, this.#approvals);
      this.#projects.set(cwd, opening);
      // A person can trust the folder, or repair its configuration, and try again.
      opening.catch(() => this.#projects.delete(cwd));
    }
    return opening;
  }

  /** Waiting calls of all projects: each is asked about in the session that it belongs to. */
  #askEditor(): Approvals {
    const waiting = createApprovals();
    return {
      ...waiting,
      request: (request, signal, wait) => {
        const decided = waiting.request(request, signal, wait);
        const session = this.#sessions.get(request.instance_id);
        const denied = { approved: false, reason: "No editor has the session open." };
        Promise.resolve(session?.ask(request, signal) ?? denied)
          .catch(() => ({ approved: false, reason: "The editor could not be asked." }))
          // A late answer is ignored: the call was aborted or has expired.
          .then((decision) => waiting.decide(request.approval_id, decision))
          .catch(() => undefined);
        return decided;
      },
    };
  }
}

interface OpenRequest {
  readonly id: string;
  readonly cwd: string;
  readonly client: AgentContext;
  readonly mcpServers?: readonly McpServer[] | undefined;
}

/** Answers a request; errors get the codes of the protocol, and say what to do. */
async function answer<Reply>(work: () => Promise<Reply>): Promise<Reply> {
  try {
    return await work();
  } catch (error) {
    throw toRequestError(error);
  }
}

const invalidParams = -32_602;
const internalError = -32_603;

function toRequestError(error: unknown): RequestError {
  if (error instanceof RequestError) return error;
  if (!(error instanceof KitError)) return new RequestError(internalError, describeError(error));
  const { code, message, hint } = error;
  const number = code === "invalid_request" ? invalidParams : internalError;
  return new RequestError(number, hint === undefined ? message : `${message} ${hint}`, { code });
}
