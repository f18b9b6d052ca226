import { expect, test } from "vitest";
import { processorMs } from "../../testing/processor-time.ts";
import { classifyCriterion, isEarsStatement, scenarioCriterion } from "./scenario.ts";

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

function parts(text: string): string {
  const { pattern, trigger, response } = classifyCriterion(text);
  return `${pattern} | ${trigger} | ${response}`;
}

test.each([
  [
    "WHEN a user logs in THEN the system SHALL greet",
    "event_driven | a user logs in | the system SHALL greet",
  ],
  ["WHEN a user logs in, THE System SHALL greet", "event_driven | a user logs in | THE System SHALL greet"],
  ["WHEN a is clicked THEN b opens", "event_driven | a is clicked | b opens"],
  ["When a, b and c are set, the App shall save", "event_driven | a, b and c are set | the App shall save"],
  ["IF it fails THEN the system SHALL retry", "unwanted_behavior | it fails | the system SHALL retry"],
  ["IF it fails, THEN THE system SHALL retry", "unwanted_behavior | it fails | THE system SHALL retry"],
  ["If it fails, the system shall retry", "unwanted_behavior | it fails | the system shall retry"],
  [
    "WHILE dragging an album THE App SHALL show it",
    "state_driven | dragging an album | THE App SHALL show it",
  ],
  ["WHERE names are shown THE App SHALL sort", "optional_feature | names are shown | THE App SHALL sort"],
  ["THE App SHALL sort", "ubiquitous |  | THE App SHALL sort"],
  ["The app shall sort", "ubiquitous |  | The app shall sort"],
  ["ALL tests SHALL pass", "ubiquitous |  | ALL tests SHALL pass"],
  [
    "WHILE idle, WHEN a key is hit, THE App SHALL wake",
    "complex | idle, WHEN a key is hit | THE App SHALL wake",
  ],
  [
    "While idle, when a key is hit, the App shall wake",
    "complex | idle, when a key is hit | the App shall wake",
  ],
  ["**WHEN** a **THEN** the system **SHALL** b", "event_driven | a | the system SHALL b"],
  ["**If** a, **then** the system **shall not** b", "unwanted_behavior | a | the system shall not b"],
  [
    "THE tool SHALL skip `src/**/*.ts` and `__init__`",
    "ubiquitous |  | THE tool SHALL skip `src/**/*.ts` and `__init__`",
  ],
  ["GIVEN a WHEN b THEN c", "event_driven | b | c"],
  [
    "WHEN the user first a then b, THE System SHALL c",
    "event_driven | the user first a then b | THE System SHALL c",
  ],
  [
    "WHEN ユーザーが押す時、THE Fetch Lambda SHALL 保存する",
    "event_driven | ユーザーが押す時 | THE Fetch Lambda SHALL 保存する",
  ],
  ["IF エラーの場合、THEN THE Lambda SHALL 返す", "unwanted_behavior | エラーの場合 | THE Lambda SHALL 返す"],
  ["WHEN it\n  rains THEN the\n  roof SHALL close", "event_driven | it rains | the roof SHALL close"],
  ["RAGバックエンドAPIは、提供すること", "unclassified |  | RAGバックエンドAPIは、提供すること"],
  ["Whenever nothing follows", "event_driven | nothing follows | "],
  ["", "unclassified |  | "],
])("%s", (text, expected) => {
  expect(parts(text)).toBe(expected);
});

test("a condition that contains if or where in passing is not complex", () => {
  expect(
    classifyCriterion("WHEN checking if a file exists THEN the system SHALL look where it lies").pattern,
  ).toBe("event_driven");
});

test("an EARS statement has a keyword or subject, and SHALL", () => {
  expect(isEarsStatement("WHEN a THEN b SHALL c")).toBe(true);
  expect(isEarsStatement("- no")).toBe(false);
  expect(isEarsStatement("Add a command")).toBe(false);
  expect(isEarsStatement("When a then b")).toBe(false);
});

test("hostile sentences take linear time", () => {
  const start = processorMs();
  for (const text of [
    "WHEN ".repeat(200_000),
    `WHEN ${",".repeat(1_000_000)}`,
    `given ${", ".repeat(500_000)}`,
    "** ".repeat(300_000),
    `WHEN ${", the".repeat(200_000)}`,
  ])
    classifyCriterion(text);
  expect(processorMs() - start).toBeLessThan(1000);
});

test.each([
  [
    "QUANDO o usuário clica, ENTÃO o sistema DEVE abrir",
    "event_driven",
    "o usuário clica",
    "o sistema DEVE abrir",
  ],
  [
    "QUANDO: o usuário clica ENTÃO, o sistema DEVE abrir",
    "event_driven",
    "o usuário clica",
    "o sistema DEVE abrir",
  ],
  ["ENQUANTO há rede, o sistema DEVE enviar", "state_driven", "há rede", "o sistema DEVE enviar"],
  ["DONDE hay red, el sistema DEBE enviar", "optional_feature", "hay red", "el sistema DEBE enviar"],
  [
    "SI la carga falla ENTONCES el sistema DEBE avisar",
    "unwanted_behavior",
    "la carga falla",
    "el sistema DEBE avisar",
  ],
  [
    "LORSQUE la page charge, ALORS le système DOIT répondre",
    "event_driven",
    "la page charge",
    "le système DOIT répondre",
  ],
  [
    "WENN jemand klickt, DANN MUSS das System antworten",
    "event_driven",
    "jemand klickt",
    "MUSS das System antworten",
  ],
  ["Le système DOIT répondre QUAND il peut", "ubiquitous", "", "Le système DOIT répondre QUAND il peut"],
  ["SISTEMA abre, ENTÃO fecha", "unclassified", "", "SISTEMA abre, ENTÃO fecha"],
])("keywords in capitals are known in other languages: %s", (text, ...expected) => {
  const { pattern, trigger, response } = classifyCriterion(text);
  expect([pattern, trigger, response]).toEqual(expected);
});

test("a second condition follows a comma, or is in capitals in a sentence with keywords in capitals", () => {
  const patternOf = (text: string) => classifyCriterion(text).pattern;
  expect(patternOf("WHEN a is there WHILE b lasts THE system SHALL c")).toBe("complex");
  expect(patternOf("When a is there, while b lasts, the system shall c")).toBe("complex");
  expect(patternOf("When a query has a WHERE clause, the system shall read it")).toBe("event_driven");
});
