import { once } from "node:events";
import { createServer, request } from "node:http";
import { connect, createServer as createPeer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { isAllowedHost, parseHostPattern } from "./host-pattern.ts";
import { openProxy, type ProxyOptions } from "./proxy.ts";
import { createFolder, openWalled, wallTest } from "./walled.suite.ts";

const folder = await createFolder();
const seen: string[] = [];
const server = createServer((incoming, response) => {
  seen.push(`${incoming.headers.host} ${incoming.url} ${incoming.headers["proxy-authorization"] ?? "-"}`);
  response.end(`hello ${incoming.url}`);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
afterAll(() => void server.close());
const address = server.address();
const port = address !== null && typeof address === "object" ? address.port : 0;
let count = 0;

/** Opens a proxy on a socket; `addresses` resolves the names. */
async function open(
  allowed: readonly string[],
  overrides: Partial<ProxyOptions> & { addresses?: readonly string[] } = {},
): Promise<string> {
  count += 1;
  const at = join(folder, `p${count}`);
  const { addresses = ["127.0.0.1"], ...options } = overrides;
  const proxy = await openProxy({ at, allowed, lookup: async () => addresses, ...options });
  afterAll(() => proxy.close());
  return at;
}

/** The status and body of a request with an absolute URL. */
async function get(socketPath: string, url: string, headers: Record<string, string> = {}): Promise<string> {
  const sent = request({
    socketPath,
    path: url,
    headers: { host: new URL(url).host, ...headers },
    agent: false,
  }).end();
  const [response] = await once(sent, "response");
  let body = "";
  for await (const part of response.setEncoding("utf8")) body += part;
  return `${response.statusCode} ${body.trim()}`;
}

/** Opens a tunnel and sends a request through it; returns the answer. */
async function tunnel(socketPath: string, to: string): Promise<string> {
  const socket = connect(socketPath);
  socket.write(`CONNECT ${to} HTTP/1.1\r\nHost: ${to}\r\n\r\n`);
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    if (text === "" && part.startsWith("HTTP/1.1 200")) socket.write("GET /through HTTP/1.0\r\n\r\n");
    text += part;
  });
  await once(socket, "close");
  return text;
}

test("the proxy forwards requests to allowed hosts unchanged, without its own headers", async () => {
  const at = await open(["api.example.com", "127.0.0.1"]);
  expect(
    await get(at, `http://API.example.com.:${port}/a?b=c`, {
      "proxy-authorization": "Basic x",
      host: "evil.example",
    }),
  ).toBe("200 hello /a?b=c");
  expect(seen.at(-1)).toBe(`api.example.com.:${port} /a?b=c -`);
  expect(await tunnel(at, `api.example.com:${port}`)).toContain("hello /through");
});

test("all other hosts are refused, however they are spelled", async () => {
  const at = await open(["api.example.com:443", "*.wide.example"]);
  for (const host of [
    "api.example.com",
    "example.com",
    "wide.example",
    "evilwide.example",
    "wide.example.evil",
    "localhost",
    "127.0.0.1",
    "2130706433",
    "0x7f000001",
    "127.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
  ]) {
    expect(await tunnel(at, `${host}:${port}`), host).toMatch(/^HTTP\/1.1 403 /);
  }
  for (const to of ["x", "api.example.com", ":443", "api.example.com:443@evil:80", "api.example.com:99999"]) {
    expect(await tunnel(at, to), to).toMatch(/^HTTP\/1.1 40[03] /);
  }
  expect(await get(at, `http://evil.example:${port}/`)).toMatch(/^403 /);
});

test("an allowed name that resolves to this machine, its network or a cloud's metadata address is refused", async () => {
  const inner = [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "224.0.0.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "fe80::1",
    "fd00:ec2::254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    // The addresses of this machine can be public.
    ...Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ address }) => address)),
  ];
  for (const each of inner) {
    const at = await open(["api.example.com"], { addresses: [each] });
    expect(await tunnel(at, `api.example.com:${port}`), each).toMatch(/^HTTP\/1.1 403 /);
    expect(await get(at, `http://api.example.com:${port}/`), each).toMatch(/^403 /);
  }
  for (const allowed of [
    ["api.example.com", "127.0.0.1"],
    ["api.example.com", `127.0.0.1:${port}`],
    ["localhost"],
    ["127.0.0.1"],
  ]) {
    const host = allowed[0] ?? "";
    expect(await tunnel(await open(allowed), `${host}:${port}`), host).toContain("hello");
  }
  // The proxy connects to a public address, which never answers.
  const at = await open(["api.example.com"], { addresses: ["10.0.0.1", "203.0.113.1"] });
  const trying = tunnel(at, `api.example.com:${port}`);
  expect(
    await Promise.race([trying, new Promise((resolve) => setTimeout(resolve, 300, "dialled"))]),
  ).not.toMatch(/^HTTP\/1.1 403/);
});

test("a proxy that other processes can reach requires its token", async () => {
  const at = await open(["127.0.0.1"], { token: "t0ken" });
  expect(await get(at, `http://127.0.0.1:${port}/`)).toMatch(/^407 /);
  expect(await tunnel(at, `127.0.0.1:${port}`)).toMatch(/^HTTP\/1.1 407 /);
  const credentials = { "proxy-authorization": `Basic ${Buffer.from("kit:t0ken").toString("base64")}` };
  expect(await get(at, `http://127.0.0.1:${port}/known`, credentials)).toBe("200 hello /known");
});

test("no answer of a host ends the process: what cannot be passed on is answered with 502 or cut off", async () => {
  const line = (status: string): string => `HTTP/1.1 ${status}\r\ncontent-length: 2\r\n\r\nok`;
  const answers = [
    ...["000 X", "001 X", "099 X", "1000 X", "99999 X", "-1 X", "20 X", "abc X", "", "200"].map(line),
    ...["101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x", "101 X", "100 Continue", "199 X"].map(
      line,
    ),
    ...["600 X", "999 X", "204 X", "304 X", "200 \u0001\u0002", "200 a\rb", "200 \u20ac"].map(line),
    ...[
      "200 X\r\nx: \u0001",
      "200 X\r\nx: \u0000",
      "200 X\r\n: y",
      "200 X\r\na b: c",
      "200 X\r\nx: \u007f",
    ].map(line),
    ...[
      "200 X\r\ncontent-length: 5",
      "200 X\r\ntransfer-encoding: chunked",
      "200 X\r\ncontent-length: -1",
    ].map(line),
    "HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    "HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\nshort",
    "HTTP/1.1 103 Early\r\nlink: x\r\n\r\n".repeat(200),
    `HTTP/1.1 200 X\r\n${"x: y\r\n".repeat(5_000)}\r\n`,
    `HTTP/1.1 200 X\r\nx: ${"y".repeat(100_000)}\r\n\r\n`,
    ...["HTTP/9.9 200 X\r\n\r\n", "SSH-2.0-x\r\n", "\u0000\u0001\u0002", "HTTP/1.1", ""],
  ];
  let answer = "";
  const peer = createPeer((socket) => {
    socket.on("error", () => undefined).once("data", () => socket.end(answer));
  }).listen(0, "127.0.0.1");
  afterAll(() => void peer.close());
  await once(peer, "listening");
  const address = peer.address();
  const host = `127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`;
  const at = await open(["127.0.0.1"]);
  const uncaught: unknown[] = [];
  const note = (error: unknown): void => void uncaught.push(error);
  process.on("uncaughtException", note);
  try {
    for (answer of answers) {
      const got = await get(at, `http://${host}/`).catch(() => "cut off");
      expect(got, JSON.stringify(answer.slice(0, 60))).toMatch(/^(200|204|304|600|999|502) ?|^cut off$/);
      await new Promise((resolve) => setImmediate(resolve));
      expect(uncaught, JSON.stringify(answer.slice(0, 60))).toEqual([]);
    }
    answer = line("099 X");
    expect(await get(at, `http://${host}/`)).toMatch(/^502 /);
    answer = line("101 X");
    expect(await get(at, `http://${host}/`)).toMatch(/^502 /);
  } finally {
    process.off("uncaughtException", note);
  }
  expect(await get(at, `http://127.0.0.1:${port}/after`)).toBe("200 hello /after");
});

test("a host pattern is a name, a wildcard or an address, each with or without a port", () => {
  for (const text of [
    "",
    "*",
    "*.com",
    "*.10.0.0.1",
    "http://a.example",
    "a.example/x",
    "a b",
    "a.example:0",
    "a.example:70000",
    "[::1",
    "::1",
    "-a.example",
    "a..b",
    "1.2.3",
    "user@a.example",
    "a*.example",
  ]) {
    expect(parseHostPattern(text), text).toBeUndefined();
  }
  expect(parseHostPattern("*.Example.COM:8443")).toEqual({
    host: "example.com",
    matchesSubdomains: true,
    port: 8443,
  });
  expect(parseHostPattern("[::1]:80")).toEqual({ host: "::1", matchesSubdomains: false, port: 80 });
  fc.assert(
    fc.property(fc.domain(), fc.domain(), fc.integer({ min: 1, max: 65_535 }), (name, other, at) => {
      const pattern = parseHostPattern(`*.${name}`);
      if (pattern === undefined) return;
      const lower = name.toLowerCase();
      expect(isAllowedHost({ host: `sub.${lower}`, port: at }, [pattern])).toBe(true);
      expect(isAllowedHost({ host: lower, port: at }, [pattern])).toBe(false);
      expect(isAllowedHost({ host: `${lower}.${other.toLowerCase()}.x`, port: at }, [pattern])).toBe(false);
    }),
  );
});

wallTest("a command reaches its allowed hosts through the proxy, and no other host", async () => {
  const { run } = await openWalled(folder);
  const fetching = `fetch("http://localhost:${port}/node").then((r) => r.text()).then(console.log, (e) => console.log("failed"))`;
  const line = `"${process.execPath}" -e '${fetching}'; exit 3`;
  const network = [`localhost:${port}`];
  expect(await run(line, { access: { write: false, network } })).toMatchObject({
    stdout: "hello /node\n",
    exit_code: 3,
  });
  for (const access of [{ network: ["localhost:1"] }, { network: [] }, {}]) {
    const { stdout } = await run(line, { access: { write: false, ...access } });
    expect(stdout).not.toContain("hello");
  }
  const around = `const s = require("node:net").connect(${port}, "127.0.0.1"); s.on("connect", () => console.log("hello")).on("error", () => {})`;
  expect((await run(`"${process.execPath}" -e '${around}'`, { access: { network } })).stdout).toBe("");
  await expect(run("true", { access: { network: ["http://x"] } })).rejects.toMatchObject({
    code: "invalid_request",
  });
  expect((await run("kill -9 $$", { access: { network } })).exit_code).toBe(137);
  expect(await run("no-such-program", { access: { network } })).toMatchObject({ exit_code: 127 });
});
