import { expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { describeError } from "./report-error.ts";

function thrownByProject(options: { readonly hint?: string; readonly cause?: unknown } = {}): KitError {
  return new KitError({ code: "invalid_request", message: "Say which file.", ...options });
}

/** As kit hands on what a workflow has thrown. */
function handedOn(error: KitError): KitError {
  const { code, message, hint } = error;
  const meta = { run_id: "run_1" };
  return new KitError({ code, message, meta, cause: error, hint });
}

test("the log of an error that kit passes on shows once where the project threw it", () => {
  const text = describeError(handedOn(thrownByProject()));
  expect(text.split("\n")[0]).toBe("run_1 KitError: Say which file.");
  expect(text).toContain("at thrownByProject ");
  expect(text).not.toContain("at handedOn ");
  expect(text.split("Say which file.")).toHaveLength(2);
});

test("the project's own cause is printed too", () => {
  const text = describeError(handedOn(thrownByProject({ cause: new Error("No such column.") })));
  expect(text).toContain("at thrownByProject ");
  expect(text).toContain("caused by Error: No such column.");
});

test("an error with a hint prints the hint instead of the place where it was thrown", () => {
  expect(describeError(handedOn(thrownByProject({ hint: "Name one." })))).toBe(
    "run_1 Say which file. Name one.",
  );
});
