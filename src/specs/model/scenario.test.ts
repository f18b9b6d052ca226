import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { scenarioCriterion } from "./scenario.ts";

test("WHEN and THEN are an event, in bold or plain, on one line or several", () => {
  const expected = { pattern: "event_driven", trigger: "the user saves", response: "the file is written" };
  expect(scenarioCriterion("**WHEN** the user saves, **THEN** the file is written")).toEqual(expected);
  expect(scenarioCriterion("When the user saves, then the file is written")).toEqual(expected);
  expect(scenarioCriterion("- **WHEN** the user saves\n- **THEN** the file is written")).toEqual(expected);
  expect(scenarioCriterion("- WHEN the user saves\r\n- THEN the file is written")).toEqual(expected);
});

test("GIVEN names the state", () => {
  expect(scenarioCriterion("1. **Given** a cart, **When** it is paid, **Then** an order exists")).toEqual({
    pattern: "complex",
    trigger: "given a cart, when it is paid",
    response: "an order exists",
  });
  expect(scenarioCriterion("Given a cart, then it shows a total")).toEqual({
    pattern: "state_driven",
    trigger: "a cart",
    response: "it shows a total",
  });
});

test("AND belongs to the step before it", () => {
  expect(scenarioCriterion("- **WHEN** a\n- **AND** b\n- **THEN** c\n- **AND** d")).toEqual({
    pattern: "event_driven",
    trigger: "a AND b",
    response: "c AND d",
  });
});

test("keywords of translated documents count in bold", () => {
  expect(scenarioCriterion("**当** 用户保存, **那么** 文件被写入")).toMatchObject({
    trigger: "用户保存",
    response: "文件被写入",
  });
});

test("a text without WHEN and THEN is not a scenario, and words inside of sentences are no keywords", () => {
  for (const text of ["", "The list is sorted", "Given a cart", "It says when the shop opens"]) {
    expect(scenarioCriterion(text)).toBeUndefined();
  }
});

test("long hostile texts take no time", () => {
  const start = processorMs();
  for (const part of [" \n", "**", ", ", "given ", "**given", "- "]) scenarioCriterion(part.repeat(200_000));
  expect(processorMs() - start).toBeLessThan(1000);
});
