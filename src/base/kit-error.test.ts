import { expect, test } from "vitest";
import { TypedOutputError } from "../agents/output/typed-output.ts";
import { PythonError, PythonException } from "../python/python-error.ts";
import { KitError } from "./kit-error.ts";

const failure = { exception: { type: "ValueError", message: "x" }, traceback: "", stdout: "" };

test("an error of another copy of kit is an instance of the same class, and of no other", async () => {
  const [base, typed, python] = (await Promise.all(
    ["./kit-error.ts", "../agents/output/typed-output.ts", "../python/python-error.ts"].map(
      (path) => import(`${path}?second`),
    ),
  )) as [Record<string, never>, Record<string, never>, Record<string, never>];
  const made: readonly (readonly [unknown, readonly unknown[]])[] = [
    [Reflect.construct(base.KitError ?? Object, [{ code: "conflict", message: "x" }]), [KitError]],
    [Reflect.construct(typed.TypedOutputError ?? Object, [[]]), [KitError, TypedOutputError]],
    [Reflect.construct(python.PythonError ?? Object, [failure]), [KitError, PythonError]],
    [Reflect.construct(python.PythonException ?? Object, ["KeyError", "x"]), [PythonException]],
    [new Error("x"), []],
    [null, []],
    ["x", []],
  ];
  const classes = [KitError, TypedOutputError, PythonError, PythonException];
  for (const [error, expected] of made) {
    expect(classes.filter((one) => error instanceof one)).toEqual(expected);
  }
});

test("a subclass recognizes only its own instances", () => {
  class Refusal extends KitError {}
  const error = new Refusal({ code: "forbidden", message: "x" });
  expect([error instanceof Refusal, error instanceof KitError]).toEqual([true, true]);
  expect(new KitError({ code: "forbidden", message: "x" }) instanceof Refusal).toBe(false);
});

test("the mark is neither printed nor serialized", () => {
  const error = new KitError({ code: "forbidden", message: "x" });
  expect(Reflect.ownKeys(error).filter((key) => typeof key === "symbol")).toEqual([]);
});
