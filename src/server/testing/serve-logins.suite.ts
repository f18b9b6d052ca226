import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { onTestFinished, vi } from "vitest";
import { loadConfig } from "../../app/config/load-config.ts";
import { openProjectService } from "../../app/service/open-project-service.ts";
import {
  createOAuthServer,
  type OAuthServer,
  type OAuthServerOptions,
} from "../../mcp/auth/oauth-server.suite.ts";
import { modernListener, serveHttp } from "../../mcp/servers/http-server.suite.ts";
import { openProject } from "../../project/open-project.ts";
import { InMemorySessionStore } from "../../stores/memory/memory-store.ts";
import type { RequestEntry } from "../answer-request.ts";
import { type ServedService, serveService } from "./serve-service.ts";

export interface ServedLogins extends ServedService {
  readonly oauth: OAuthServer;
  readonly origin: string;
  /** The folder of the person's logins. */
  readonly logins: string;
  readonly requests: readonly RequestEntry[];
}

/** A server whose agents use an MCP server, `tracker`, that asks for a login. */
export async function serveLogins(
  options: Parameters<typeof serveService>[0] = {},
  oauthOptions: OAuthServerOptions = {},
): Promise<ServedLogins> {
  const state = await mkdtemp(join(tmpdir(), "kit-state-"));
  vi.stubEnv("XDG_STATE_HOME", state);
  onTestFinished(async () => {
    vi.unstubAllEnvs();
    await rm(state, { recursive: true });
  });
  const oauth = createOAuthServer(modernListener(), oauthOptions);
  const { url } = await serveHttp(oauth.listener);
  const requests: RequestEntry[] = [];
  const served = await serveService({
    onRequest: (entry) => requests.push(entry),
    openService: async ({ root, model }) => {
      const loaded = await loadConfig({ cwd: root, environment: { KIT_TRUST: "1" } });
      return await openProjectService({
        project: await openProject({ root, config: loaded.config }),
        closesProject: true,
        loaded,
        ...{ engine: "memory", store: new InMemorySessionStore() },
        ...{ models: { "echo/echo": model }, defaults: { model: "echo/echo" } },
      });
    },
    ...options,
    files: {
      "kit.toml": `[mcp.servers.tracker]\nurl = "${url}"\n[mcp.servers.program]\ncommand = "false"\n`,
      ...options.files,
    },
  });
  onTestFinished(() => served.close());
  const origin = new URL(url).origin;
  return { ...served, oauth, origin, logins: join(state, "kit", "mcp-logins"), requests };
}

/** A browser at one server. Cookies know no ports: `cookies` can be those of a browser at another server, too. */
export class Browser {
  readonly #served: ServedService;
  readonly #headers: Readonly<Record<string, string>>;
  /** Values by name. */
  readonly cookies: Map<string, string>;

  constructor(
    served: ServedService,
    headers: Readonly<Record<string, string>> = {},
    cookies = new Map<string, string>(),
  ) {
    this.#served = served;
    this.#headers = headers;
    this.cookies = cookies;
  }

  async begin(server = "tracker") {
    const { url } = this.#served;
    const reply = await this.#served.send(`/logins/${server}`, {
      method: "POST",
      headers: { origin: url, "sec-fetch-site": "same-origin", ...this.#headers },
    });
    const [cookie] = reply.headers.getSetCookie();
    this.#storeCookie(cookie);
    return { ...reply, setCookie: cookie ?? "" };
  }

  /** Opens the page of the authorization server, whose person agrees; returns the address that it sends the browser to. */
  async visit(address: string): Promise<URL> {
    const { headers } = await fetch(address, { redirect: "manual" });
    return new URL(headers.get("location") ?? "");
  }

  /** Comes back from another site. `fetch` would mark its requests otherwise. */
  async open(address: URL, accept = "text/html") {
    const headers = { accept, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
    const cookie = [...this.cookies].map((pair) => pair.join("=")).join("; ");
    const sent = get(address, { headers: { ...headers, ...(cookie === "" ? {} : { cookie }) } });
    const [reply] = (await once(sent, "response")) as [IncomingMessage];
    this.#storeCookie(reply.headers["set-cookie"]?.[0]);
    return { status: reply.statusCode, headers: reply.headers, text: await text(reply) };
  }

  #storeCookie(header: string | undefined): void {
    const [, name, value = ""] = /^([^=]+)=([^;]*)/.exec(header ?? "") ?? [];
    if (name === undefined) return;
    if (header?.includes("Max-Age=0;")) this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}
