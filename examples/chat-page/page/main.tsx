import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";
import { api, openChat } from "./desk.ts";
import "./styles.css";

const root = createRoot(document.querySelector("#root") as Element);
const id = openChat();
const stored = await fetch(`${api}/${id}/messages`);
root.render(
  <StrictMode>
    {stored.ok ? <Chat id={id} stored={(await stored.json()).messages} /> : <p>{await stored.text()}</p>}
  </StrictMode>,
);
