import { hash } from "node:crypto";
import { forbidden, invalid } from "../../files/obstacle.ts";
import type { DirectoryEntry, FileStat, Sandbox } from "../contract.ts";
import { replaceText } from "../host/replace-text.ts";
import { execRemotely } from "./remote-exec.ts";
import { isolationBy } from "./remote-options.ts";
import { globRemotely, grepRemotely } from "./remote-search.ts";
import { answer, namesOf, pathIn, type RemoteView } from "./remote-view.ts";
import { scripts, withInput } from "./scripts.ts";

/** Larger files are not for a model or a string; `download` takes them. */
const maxReadBytes = 16 * 1024 * 1024;
const maxDownloadBytes = 1024 * 1024 * 1024;
/** A sandbox on a machine of its own, which is started by the first call that needs it. */
export function createRemoteSandbox(
  options: Pick<RemoteView, "link" | "name" | "persistent" | "requiresWall">,
): Sandbox {
  return viewFrom(toView(options));
}

/** The workspace of a machine from its root. */
export function toView(
  options: Pick<RemoteView, "link" | "name" | "persistent" | "requiresWall">,
): RemoteView {
  return { ...options, cwd: "", closing: new AbortController(), running: new Set() };
}

function viewFrom(view: RemoteView): Sandbox {
  const { link, closing, running } = view;
  const read = (path: string, maxBytes: number): Promise<Buffer> => readFrom(view, path, maxBytes);
  const write = (path: string, content: string | Uint8Array): Promise<void> =>
    writeTo(view, path, { content: Buffer.from(content) });
  return {
    name: view.name,
    capabilities: { exec: true, literalExec: true, persistent: view.persistent },
    cwd: view.cwd,
    isolation: async () => isolationBy(view.name, (await link.open()).wall),
    async resolve(path, options) {
      const inside = pathIn(view, path);
      if (inside === "") return "";
      const script = options?.keepLink === true ? scripts.resolveEntry : scripts.resolve;
      return await answer(view, inside, { script });
    },
    stat: async (path) => toStat(await answer(view, pathIn(view, path), { script: scripts.stat })),
    exists: async (path) =>
      (await answer(view, pathIn(view, path), { script: scripts.exists })).trim() === "1",
    list: async (path = "") => toEntries(await answer(view, pathIn(view, path), { script: scripts.list })),
    readFile: async (path) => (await read(path, maxReadBytes)).toString("utf8"),
    readBytes: async (path) => new Uint8Array(await read(path, maxReadBytes)),
    writeFile: write,
    writeBytes: write,
    async mkdir(path) {
      await answer(view, pathIn(view, path), { script: scripts.mkdir });
    },
    async rm(path, options) {
      const inside = pathIn(view, path);
      if (inside === "") throw forbidden("The workspace itself cannot be removed.");
      const args = [options?.recursive === true ? "1" : "0"];
      await answer(view, inside, { script: scripts.remove, args, repeatable: false });
    },
    async edit(path, change) {
      const bytes = await read(path, maxReadBytes);
      const { text, replacements } = replaceText(bytes, change, pathIn(view, path));
      await writeTo(view, path, { content: Buffer.from(text), expected: hash("sha256", bytes) });
      return { replacements };
    },
    grep: (request) => grepRemotely(view, request),
    glob: (pattern, options) => globRemotely(view, pattern, options ?? {}),
    exec(request) {
      const command = execRemotely(view, request).finally(() => running.delete(command));
      running.add(command);
      return command;
    },
    upload: write,
    download: async (path) => new Uint8Array(await read(path, maxDownloadBytes)),
    at: (folder) => viewFrom({ ...view, cwd: pathIn(view, folder) }),
    async close() {
      closing.abort();
      await Promise.allSettled(running);
      await link.rest();
    },
  };
}

async function readFrom(view: RemoteView, path: string, maxBytes: number): Promise<Buffer> {
  const text = await answer(view, pathIn(view, path), { script: scripts.read, args: [String(maxBytes)] });
  return Buffer.from(text, "base64");
}

async function writeTo(
  view: RemoteView,
  path: string,
  { content, expected = "" }: { readonly content: Buffer; readonly expected?: string },
): Promise<void> {
  if (path === "" || path.endsWith("/")) throw invalid("A path to write names a file.");
  await answer(view, pathIn(view, path), {
    ...withInput(scripts.write, content),
    args: [expected, String(content.length)],
    // The replaced text may come from an earlier attempt of the same call.
    repeatable: expected === "",
  });
}

function toStat(text: string): FileStat {
  const [kind = "", size, seconds] = text.trim().split("|");
  return {
    kind: kind === "directory" ? "directory" : kind.startsWith("regular") ? "file" : "other",
    size: Number(size),
    modified_at: new Date(Math.round(Number(seconds) * 1000)).toISOString(),
  };
}

const kinds: Readonly<Record<string, FileStat["kind"]>> = { f: "file", d: "directory", l: "link" };

function toEntries(text: string): readonly DirectoryEntry[] {
  return namesOf(Buffer.from(text, "base64"))
    .map((entry): DirectoryEntry => ({ name: entry.slice(1), kind: kinds[entry.charAt(0)] ?? "other" }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
