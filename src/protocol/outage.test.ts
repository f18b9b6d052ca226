import { expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { ownModule } from "../base/own-package.ts";
import { isUnstarted, outageOf } from "./outage.ts";

const system = (code: string, more: object = {}): Error => Object.assign(new Error(code), { code, ...more });
const thrown = async (url: string): Promise<unknown> => await import(url).catch((error: unknown) => error);

test("a process without files, memory or processes is an outage, also as the cause of another error", () => {
  for (const code of ["EMFILE", "ENFILE", "ENOMEM"]) {
    expect(outageOf(system(code))?.code).toBe("store_unavailable");
    const refusal = new KitError({ code: "unavailable", message: "No.", cause: system(code) });
    expect(outageOf(new Error("It failed", { cause: refusal }))?.cause).toBeInstanceOf(Error);
  }
  expect(outageOf(system("EAGAIN", { syscall: "spawn sh" }))?.message).toBe(
    "This machine cannot be used: it can start no more processes.",
  );
  expect(outageOf(system("EAGAIN", { syscall: "read" }))).toBeUndefined();
  expect(outageOf(system("ENOENT"))).toBeUndefined();
  expect(outageOf(new Error("EMFILE"))).toBeUndefined();
  expect(outageOf("EMFILE")).toBeUndefined();
});

test("a missing module of kit is an outage, and one of the application is a failure", async () => {
  const own = await thrown(ownModule("app/absent").href);
  expect(outageOf(own)?.message).toBe("kit's own code cannot be used: a file of it is missing.");
  expect(outageOf(own)?.message).not.toContain("/");
  expect(isUnstarted(new Error("wrapped", { cause: own }))).toBe(true);
  const theirs = await thrown("data:text/javascript,import 'file:///absent/agent.ts'");
  expect(theirs).toBeInstanceOf(Error);
  expect(outageOf(theirs)).toBeUndefined();
  expect(isUnstarted(system("EMFILE", { syscall: "open" }))).toBe(false);
});
