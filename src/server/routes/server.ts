import { createHash } from "node:crypto";
import type { KitConfig } from "../../app/config/config-schema.ts";
import { findingsOf } from "../../app/service/findings.ts";
import type { Service } from "../../app/service/service.ts";
import { version } from "../../base/own-package.ts";
import { isRecord } from "../../base/record.ts";
import type { Project } from "../../project/project.ts";
import { serverRoutes } from "../../protocol/routes/project-routes.ts";
import type { ServerState } from "../../protocol/service.ts";
import type { AccessOptions } from "../access/access.ts";
import type { Authorization } from "../access/authorize.ts";
import type { ServerLimits } from "../limits.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";

interface ServerRoutesOptions {
  readonly project: Project;
  readonly service: Service | undefined;
  readonly authorization: Authorization;
  readonly limits: ServerLimits;
  readonly access: AccessOptions | undefined;
  readonly hasAuthorize: boolean;
  readonly console: ServerState["console"];
  readonly expose: ServerState["expose"];
  /** The configuration of the server; a program's own server has none. */
  readonly configuration: KitConfig | undefined;
}

/** `GET /server`: the settings of the server, and its problems. */
export function bindServerRoutes(options: ServerRoutesOptions): readonly Route[] {
  const { project, service, authorization, limits, access, configuration: config } = options;
  const started_at = new Date().toISOString();
  const handlers: Handlers<typeof serverRoutes> = {
    async "GET /server"({ principal, action }) {
      await authorization.check({ principal, action });
      return {
        version,
        node: process.version,
        project: project.name,
        started_at,
        console: options.console,
        expose: options.expose,
        keys: (access?.apiKeys ?? []).map(idOfKey),
        has_auth: access?.auth !== undefined,
        has_authorize: options.hasAuthorize,
        limits: toNumbers(limits),
        ...(config === undefined ? {} : { configuration: withoutSecrets(config) }),
        findings: await findingsOf({ project, service, config }),
      };
    },
  };
  return bindRoutes(serverRoutes, handlers);
}

/** Returns the id of the principal of a key. */
function idOfKey(key: string): string {
  return `key_${createHash("sha256").update(key).digest("hex").slice(0, 12)}`;
}

function toNumbers(limits: ServerLimits): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(limits).flatMap(([name, value]) =>
      typeof value === "number" ? [[name.replace(/[A-Z]/g, (sign) => `_${sign.toLowerCase()}`), value]] : [],
    ),
  );
}

const hidden = "[hidden]";
/** Names of settings whose values are secrets, and of tables in which any value can be one. */
const secretName = /key|secret|token|password|credential|authorization|cookie/i;
const secretTable = /^(env|environment|headers)$/i;
/** The depth limit: a configuration in code can contain itself. */
const deepest = 12;

/** Converts a configuration for display: hides secrets, and replaces code by its name. */
function withoutSecrets(config: KitConfig): Readonly<Record<string, unknown>> {
  return toReadable(config, { depth: 0, hides: false }) as Readonly<Record<string, unknown>>;
}

function toReadable(value: unknown, at: { readonly depth: number; readonly hides: boolean }): unknown {
  if (value === undefined || value === null || typeof value === "boolean") return value;
  if (typeof value === "function") return "[code]";
  if (typeof value === "object" && at.depth >= deepest) return "[…]";
  const inner = { ...at, depth: at.depth + 1 };
  if (Array.isArray(value)) return value.map((item) => toReadable(item, inner));
  if (isRecord(value)) {
    const isPlain =
      Object.getPrototypeOf(value) === Object.prototype || Object.getPrototypeOf(value) === null;
    if (!isPlain) return "[object]";
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => {
        const hides =
          at.hides || secretTable.test(name) || (secretName.test(name) && typeof item !== "number");
        return [name, toReadable(item, { ...inner, hides })];
      }),
    );
  }
  if (at.hides) return hidden;
  return typeof value === "string" ? withoutPassword(value) : value;
}

/** Removes the user, the password and the query of an address; a query can also hold a password. */
function withoutPassword(text: string): string {
  const [scheme] = /^\s*[a-z][a-z0-9+.-]*:\/\//i.exec(text) ?? [];
  if (scheme === undefined) return text;
  const url = URL.parse(text);
  // Parsers do not find the password in an address that is not percent-encoded, or that has several hosts.
  if (url === null || url.pathname.includes("@") || url.hash.includes("@"))
    return text.includes("@")
      ? `${scheme}${text.slice(text.lastIndexOf("@") + 1).replace(/\?.*$/s, "")} ${hidden}`
      : text;
  if (url.username === "" && url.password === "" && url.search === "") return text;
  url.username = "";
  url.password = "";
  url.search = "";
  return `${url.href} ${hidden}`;
}
