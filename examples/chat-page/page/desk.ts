import { KitChatTransport } from "kit/client";

/** `ann` is the user. Behind a login of yours it is the id of whoever has signed in. */
export const api = "/agents/desk/ann/ui";

/** The functions that the agent can call in the browser, by the name of the tool. */
export const pageTools: Readonly<Record<string, () => string>> = {
  local_time: () => new Date().toLocaleTimeString([], { timeStyle: "short" }),
};

export const transport = new KitChatTransport({
  api,
  tools: [{ name: "local_time", description: "The time on the clock of the person who asks." }],
});

/** The id of the chat is in the address of the page, so that a reload and a second tab show the same chat. */
export function openChat(): string {
  const address = new URL(location.href);
  const id = address.searchParams.get("chat") ?? crypto.randomUUID();
  address.searchParams.set("chat", id);
  history.replaceState(null, "", address);
  return id;
}
