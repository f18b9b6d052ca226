import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import { createScriptedModel, type ScriptedModel, type ScriptedTurn } from "../../testing/scripted-model.ts";

export interface EchoModel {
  readonly model: ScriptedModel;
  /** Prompts of the text `hold` wait until this is called; it lets all of them go on. */
  release(): void;
  /** Resolves when that many prompts of the text `hold` have been held since the start. */
  held(count: number): Promise<void>;
}

/**
 * A model that says what it was told, word by word, twenty words a second if it begins with `calmly`. `slow` makes it speak ten times a second for 30 s,
 * `hold` waits to be let go, `fail` fails, `fail for good` in a way that does not pass, and `pay 5` asks for the tool of that name, as `call pay {"cents":5}` does;
 * `weather` and `weather twice` call the tool of that name, if there is one; `cite` has a source.
 */
export function createEchoModel(): EchoModel {
  let gate = Promise.withResolvers<void>();
  let count = 0;
  const waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  const hold = async (signal: AbortSignal | undefined): Promise<void> => {
    count += 1;
    for (const waiter of waiting) if (waiter.count <= count) waiter.resolve();
    const aborted = Promise.withResolvers<never>();
    signal?.addEventListener("abort", () => aborted.reject(signal.reason), { once: true });
    await Promise.race([gate.promise, aborted.promise]);
  };
  const answer = async (call: LanguageModelV4CallOptions): Promise<ScriptedTurn> => {
    const last = call.prompt.at(-1);
    const text = lastText(call);
    if (last?.role === "tool") {
      const said = last.content.flatMap((part) =>
        part.type === "tool-result" && part.toolName === "weather" && part.output.type === "text"
          ? [`It said ${part.output.value}.`]
          : [],
      );
      return { text: said.length === 0 ? "It is done." : said.join(" ") };
    }
    if (text.startsWith("weather") && call.tools?.some(({ name }) => name === "weather") === true) {
      const cities = text === "weather twice" ? ["Rome", "Oslo"] : ["Rome"];
      return { toolCalls: cities.map((place) => ({ name: "weather", input: { place } })) };
    }
    if (text === "fail for good")
      throw new KitError({ code: "context_overflow", message: "It is too long." });
    if (text === "fail") throw new Error("the provider is down");
    if (text === "slow") {
      return { deltas: Array.from({ length: 300 }, (_, count) => `${count} `), delayMs: 100 };
    }
    if (text.startsWith("calmly ")) return { deltas: text.split(/(?<= )/), delayMs: 50 };
    if (text === "cite") {
      const source = { type: "source", sourceType: "url", id: "s", url: "https://example.org/a" } as const;
      return { deltas: ["It is ", "so."], attachments: [{ ...source, title: "A page" }] };
    }
    if (text === "long")
      return { deltas: Array.from({ length: 2_000 }, (_, n) => `word ${n} ${"x".repeat(1_000)}\n`) };
    const amount = /^pay (\d+)$/.exec(text)?.[1];
    if (amount !== undefined) return { toolCalls: [{ name: "pay", input: { cents: Number(amount) } }] };
    const [, name, input] = /^call (\w+) (\{.*\})$/.exec(text) ?? [];
    if (name !== undefined) return { toolCalls: [{ name, input: JSON.parse(input ?? "") }] };
    if (text === "hold") await hold(call.abortSignal);
    return { deltas: text.split(/(?<= )/), usage: { input: 3, output: 2 } };
  };
  return {
    model: createScriptedModel(answer, { recordCalls: false }),
    release() {
      gate.resolve();
      gate = Promise.withResolvers<void>();
    },
    async held(expected) {
      if (count >= expected) return;
      await new Promise<void>((resolve) => waiting.push({ count: expected, resolve }));
    },
  };
}

function lastText({ prompt }: LanguageModelV4CallOptions): string {
  const user = prompt.findLast((message) => message.role === "user");
  const part = user?.content.at(-1);
  return typeof part === "object" && part.type === "text" ? part.text : "";
}
