import { expect, test } from "vitest";
import { checkHost, type HostRules, hostNameOf, isLoopbackAddress } from "./access.ts";

const loopback: HostRules = { localAddress: "127.0.0.1", allowedHosts: new Set(), guarded: false };
const open: HostRules = { localAddress: "10.0.0.5", allowedHosts: new Set(), guarded: false };

function passes(host: string | undefined, rules: HostRules): boolean {
  try {
    checkHost(host, rules);
    return true;
  } catch (error) {
    expect(error).toMatchObject(
      hostNameOf(host) === undefined
        ? { code: "invalid_request", message: expect.stringContaining("Host header") }
        : { code: "forbidden", hint: expect.stringContaining("server.allowed_hosts") },
    );
    return false;
  }
}

test("a server on loopback answers only requests to loopback names, with and without keys", () => {
  for (const host of ["localhost", "LOCALHOST:2024", "127.0.0.1:1", "127.8.9.1", "[::1]:2024"]) {
    expect(passes(host, loopback), host).toBe(true);
  }
  for (const host of ["evil.example", "localhost.evil.example", "10.0.0.5", "127.evil.example", "[::2]"]) {
    expect(passes(host, loopback), host).toBe(false);
    expect(passes(host, { ...loopback, guarded: true }), host).toBe(false);
  }
});

test("a request to a configured name is answered, on any port", () => {
  const rules = { ...loopback, allowedHosts: new Set(["kit.example"]) };
  expect(passes("KIT.example:8443", rules)).toBe(true);
  expect(passes("www.kit.example", rules)).toBe(false);
});

test("a server on a public address answers requests to an address, and to a name only with keys", () => {
  expect(passes("10.0.0.5:2024", open)).toBe(true);
  expect(passes("[2001:db8::1]", open)).toBe(true);
  expect(passes("kit.example", open)).toBe(false);
  expect(passes("kit.example", { ...open, guarded: true })).toBe(true);
  const withName = { ...open, guarded: true, allowedHosts: new Set(["kit.example"]) };
  expect(passes("evil.example", withName)).toBe(false);
});

test("a malformed or missing Host header is refused", () => {
  for (const host of [undefined, "", "a b/c", "a@b", "x:99999999", "[::1", "a,b", "héh", "localhost:"]) {
    expect(hostNameOf(host)).toBeUndefined();
    expect(passes(host, open), host).toBe(false);
    expect(passes(host, { ...open, guarded: true }), host).toBe(false);
  }
});

test("loopback and public addresses are distinguished in every spelling", () => {
  for (const address of ["localhost", "127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"]) {
    expect(isLoopbackAddress(address), address).toBe(true);
  }
  for (const address of [
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "::ffff:10.0.0.1",
    "127.evil.example",
    "1::ffff:27.0.0.1",
    "",
  ]) {
    expect(isLoopbackAddress(address), address).toBe(false);
  }
});
