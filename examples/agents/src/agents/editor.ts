import { createAgent } from "kit";
import { graph } from "kit/backends/graph";

/** A graph of LangGraph: drafts a notice, waits for approve or deny, and answers with the notice or that there is none. */
export default createAgent({
  description: "Writes notices for the door of the shop.",
  instructions: "You write notices of one line.",
  backend: graph(async ({ model }) => {
    const { interrupt, MessagesAnnotation, START, StateGraph } = await import("@langchain/langgraph");
    return new StateGraph(MessagesAnnotation)
      .addNode("draft", async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
      .addNode("review", ({ messages }) => {
        const notice = messages.at(-1)?.text;
        const { approved } = interrupt<unknown, { readonly approved: boolean }>({ notice });
        return approved ? {} : { messages: [{ role: "assistant", content: "There is no notice today." }] };
      })
      .addEdge(START, "draft")
      .addEdge("draft", "review")
      .compile();
  }),
});
