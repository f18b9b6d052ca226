import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { ownModule } from "../../base/own-package.ts";
import { htmlReply, staticReply } from "../reply.ts";

/** The web page of a server, from the files in `dist/console`, which `npm run build` writes. */
export interface Console {
  /** Answers with the file that the path names, else with the page: any other path is a screen of it. */
  answer(request: { readonly path: string; readonly headers: Headers }): Promise<Response>;
}

export interface ConsoleOptions {
  /** Whether the page is read-only. */
  readonly isReadOnly: boolean;
  /** Default: the folder of this build of kit. */
  readonly folder?: string;
}

/** React Flow, uPlot and virtual lists need inline styles; scripts only come from files of this server. */
const policy = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const types: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

interface StaticFile {
  readonly body: Buffer<ArrayBuffer>;
  readonly compressed: Buffer<ArrayBuffer> | undefined;
}

/** Reads a file at its first request and caches it: all files together are less than a megabyte. */
export function createConsole({ isReadOnly, folder = builtFolder() }: ConsoleOptions): Console {
  let listed: Promise<ReadonlySet<string>> | undefined;
  const list = (): Promise<ReadonlySet<string>> => {
    listed ??= listFolder(folder);
    return listed;
  };
  const files = new Map<string, Promise<StaticFile>>();
  const read = (name: string): Promise<StaticFile> => {
    const file = files.get(name) ?? readStatic(join(folder, name));
    files.set(name, file);
    file.catch(() => files.delete(name));
    return file;
  };

  async function page(path: string, headers: Headers): Promise<Response> {
    const names = await list();
    if (!names.has("index.html")) {
      listed = undefined;
      return htmlReply(notBuilt, { policy, status: 503 });
    }
    const { body } = await read("index.html");
    const html = body
      .toString("utf8")
      .replace("<head>", `<head><base href="${baseOf(path)}">`)
      .replace(
        'name="kit-console" content="full"',
        `name="kit-console" content="${isReadOnly ? "read" : "full"}"`,
      );
    const etag = `"${createHash("sha256").update(html).digest("base64url").slice(0, 22)}"`;
    // A browser applies the headers of this reply to its cached page.
    if (isKnownTo(headers, etag))
      return htmlReply(null, { policy, status: 304, headers: { etag, ...pageCaching } });
    return htmlReply(html, { policy, headers: { etag, ...pageCaching } });
  }

  return {
    async answer({ path, headers }) {
      const name = /^\/console\/(.+)$/.exec(path)?.[1];
      if (name === undefined || !(await list()).has(name)) {
        if (name?.startsWith("assets/") !== true) return await page(path, headers);
        return staticReply("There is no such file.", { status: 404, headers: plain });
      }
      if (name === "index.html") return await page("/console/", headers);
      const { body, compressed } = await read(name);
      const takesGzip = /\bgzip\b/.test(headers.get("accept-encoding") ?? "");
      return staticReply(takesGzip && compressed !== undefined ? compressed : body, {
        headers: {
          "content-type": types[extname(name)] ?? "application/octet-stream",
          // The name of a file holds a digest of its content.
          "cache-control": name.startsWith("assets/") ? "public, max-age=31536000, immutable" : "no-cache",
          ...(compressed === undefined ? {} : { vary: "accept-encoding" }),
          ...(takesGzip && compressed !== undefined ? { "content-encoding": "gzip" } : {}),
        },
      });
    },
  };
}

const plain = { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" };
const pageCaching = { "cache-control": "no-cache", vary: "accept" };

const notBuilt =
  "<!doctype html><title>kit</title><p>The console is not built. Run <code>npm run build</code>, and load this page again.";

/**
 * The folder of the files as a path relative to a screen's address, so that the page works behind a proxy that serves it
 * below a path of its own.
 */
function baseOf(path: string): string {
  const depth = path.split("/").length - 2;
  return path === "/" || path === "/console" ? "console/" : depth <= 1 ? "./" : "../".repeat(depth - 1);
}

function builtFolder(): string {
  const top = fileURLToPath(new URL(".", ownModule("index")));
  // The sources contain no built files.
  return top.endsWith(`${sep}src${sep}`) ? join(top, "../dist/console") : join(top, "console");
}

async function listFolder(folder: string, prefix = ""): Promise<ReadonlySet<string>> {
  const entries = await readdir(join(folder, prefix), { withFileTypes: true }).catch(() => []);
  // Read folder by folder: with `recursive`, workerd returns other names.
  const parts = await Promise.all(
    entries.map(async (entry) => {
      const path = `${prefix}${entry.name}`;
      if (entry.isDirectory()) return [...(await listFolder(folder, `${path}/`))];
      return entry.isFile() && extname(path) !== ".gz" ? [path] : [];
    }),
  );
  return new Set(parts.flat());
}

async function readStatic(path: string): Promise<StaticFile> {
  const [body, compressed] = await Promise.all([
    readFile(path),
    readFile(`${path}.gz`).catch(() => undefined),
  ]);
  return { body, compressed };
}

function isKnownTo(headers: Headers, etag: string): boolean {
  return (headers.get("if-none-match") ?? "")
    .split(",")
    .some((one) => one.trim().replace(/^W\//, "") === etag);
}
