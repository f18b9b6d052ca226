import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { createScriptedModel, type ScriptedTurn } from "kit/testing";

/** Not a model, but a few rules behind the interface of one, so that the example needs neither a key nor a network. */
export const deskModel = createScriptedModel(answer, { modelId: "script", recordCalls: false });

function answer({ prompt, tools = [] }: LanguageModelV4CallOptions): ScriptedTurn {
  const results = resultsOf(prompt);
  if (results.length > 0) return toText(results.map(({ name, text }) => afterCall(name, text)).join(" "));
  const message = messageOf(prompt);
  const [, order] = /\border (\d{4})\b/i.exec(message) ?? [];
  if (/refund|money back/i.test(message)) {
    if (order === undefined) return toText("For which order? Its number has four digits.");
    const input = { order, cents: 4_900 };
    return {
      ...think("This moves money, so a person has to decide."),
      toolCalls: [{ name: "refund", input }],
    };
  }
  if (/wrap|gift/i.test(message) && order !== undefined)
    return { ...think("The tool asks for the card."), toolCalls: [{ name: "wrap", input: { order } }] };
  if (order !== undefined)
    return { ...think("I look the order up."), toolCalls: [{ name: "find_order", input: { order } }] };
  if (/\btime\b/i.test(message) && tools.some(({ name }) => name === "local_time"))
    return { ...think("Only the browser knows that."), toolCalls: [{ name: "local_time", input: {} }] };
  if (/story|long/i.test(message)) return { ...toText(story), delayMs: 80 };
  return toText(
    `You wrote: “${message}”. I am a script that knows orders 4711 and 4712, refunds, gifts, the time, and one long story.`,
  );
}

function afterCall(name: string, text: string): string {
  if (name === "find_order") return `I found it: ${text}.`;
  if (name === "local_time") return `Your browser says it is ${text}.`;
  return /^(?:Paid|Wrapped)/.test(text) ? `Done. ${text}` : "Then I leave it as it is.";
}

/** The results that follow the user's newest message. */
function resultsOf(
  prompt: LanguageModelV4Prompt,
): readonly { readonly name: string; readonly text: string }[] {
  const last = prompt.at(-1);
  if (last?.role !== "tool") return [];
  return last.content.flatMap((part) => {
    if (part.type !== "tool-result") return [];
    const { output, toolName: name } = part;
    return [{ name, text: "value" in output ? String(output.value) : "" }];
  });
}

function messageOf(prompt: LanguageModelV4Prompt): string {
  const message = prompt.findLast(({ role }) => role === "user");
  if (message?.role !== "user") return "";
  return message.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).at(-1) ?? "";
}

const pace = { delayMs: 30 };
const think = (reasoning: string): ScriptedTurn => ({ ...pace, reasoning });
const toText = (text: string): ScriptedTurn => ({ ...pace, deltas: text.split(/(?<= )/) });

const story =
  `A lamp maker had a lamp for each of the hours of the night. The first one burned while people still talked,
and had to be bright. The second one was for readers, and shone on one page at a time. The third one knew the way to the kitchen.
Of the fourth one it was said that it burned for those who came home late, and it had been left on so often that its switch
was as good as new. The fifth one was the smallest. It stood in the window, and what it was good for was known to the sixth one only,
which was the sun.

Reload the page while this is written, and it goes on. Stop it, and it stops in every tab.`.replaceAll(
    /(?<!\n)\n(?!\n)/g,
    " ",
  );
