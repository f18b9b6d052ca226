import { expect, test } from "vitest";
import { Gate, networkOf } from "./access.ts";

test("an IPv4 address is one client in every spelling", () => {
  expect(networkOf("203.0.113.7")).toBe("203.0.113.7");
  expect(networkOf("::ffff:203.0.113.7")).toBe("203.0.113.7");
  expect(networkOf("::FFFF:203.0.113.7")).toBe("203.0.113.7");
});

test("all IPv6 addresses of a /64 are one client", () => {
  for (const address of [
    "2001:db8:0:1::",
    "2001:db8::1:0:0:0:1",
    "2001:db8:0:1:ffff:ffff:ffff:ffff",
    "2001:0DB8:0000:0001::7",
    "2001:db8:0:1::192.0.2.1",
  ]) {
    expect(networkOf(address), address).toBe("2001:db8:0:1::/64");
  }
  expect(networkOf("2001:db8:0:2::1")).not.toBe(networkOf("2001:db8:0:1::1"));
  expect(networkOf("::1")).toBe("0:0:0:0::/64");
  expect(networkOf("fe80::1%eth0")).toBe("fe80:0:0:0::/64");
  expect(networkOf("::3:4:5:6:192.0.2.1")).toBe("0:0:3:4::/64");
  expect(networkOf("1:2:3:4:5:6:7:8")).toBe("1:2:3:4::/64");
});

test("a text that is not an address is returned unchanged", () => {
  for (const text of ["", "unknown", ":::", "1.2.3"]) expect(networkOf(text)).toBe(text);
});

test("all addresses of a network share one allowance", () => {
  const gate = new Gate({ rateLimit: { requests: 2, per_seconds: 3_600 } });
  const count: Gate["count"] = (principal, address) => gate.count(principal, address);
  count(undefined, "2001:db8::1");
  count(undefined, "2001:db8::ffff:2");
  expect(() => count(undefined, "2001:db8::3")).toThrow(
    expect.objectContaining({ code: "too_many_requests" }),
  );
  expect(() => count(undefined, "2001:db8:0:1::1")).not.toThrow();
  for (const address of ["203.0.113.7", "::ffff:203.0.113.7"]) count(undefined, address);
  expect(() => count(undefined, "203.0.113.7")).toThrow(
    expect.objectContaining({ code: "too_many_requests" }),
  );
  expect(() => count({ id: "2001:db8::1" }, "2001:db8::1")).not.toThrow();
});
