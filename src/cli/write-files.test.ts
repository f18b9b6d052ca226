import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { testFolder } from "../testing/test-folder.ts";
import { makeNamedFolder } from "./write-files.ts";

const folder = testFolder(afterAll);

function faultOf(target: string): unknown {
  try {
    return makeNamedFolder(resolve(folder, target), target);
  } catch (error) {
    return error;
  }
}

test("a folder that cannot be created is wrong usage, with a short path and the reason", () => {
  writeFileSync(join(folder, "taken"), "");
  execFileSync("mkfifo", [join(folder, "pipe")]);
  symlinkSync("ring", join(folder, "ring"));
  symlinkSync("nowhere", join(folder, "dangling"));
  const inProc = process.platform === "linux" ? (["/proc/x", "no folder can be made there"] as const) : [];
  for (const [target = "taken", message = "taken is a file."] of [
    inProc,
    ["taken", "taken is a file."],
    ["taken/below", "taken/below cannot be made: a file is where the folder should be."],
    ["pipe", "pipe is not a folder."],
    ["ring", "ring cannot be made: links on the way to it lead to each other."],
    ["ring/below", "ring/below cannot be made: links on the way to it lead to each other."],
    ["dangling", "dangling cannot be made: a file is where the folder should be."],
    ["x/".repeat(2_048), "cannot be made: its name is too long."],
    ["y".repeat(300), "cannot be made: its name is too long."],
  ]) {
    const fault = faultOf(target);
    expect(fault, target).toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining(message),
    });
    expect(String(fault).length).toBeLessThan(160);
  }
  expect(faultOf("new/below")).toBeUndefined();
  expect(faultOf("new/below")).toBeUndefined();
});
